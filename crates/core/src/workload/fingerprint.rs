//! Fingerprint that distinguishes workloads, independent of their names and paths.
//!
//! FNV-1a (Fowler, Noll, Vo; 64 bits) over nodes, edges, costs and limits as loaded: a file that is only reformatted
//! stays the same workload. It guards against mistakes, not against attacks. `O(size of the workload)`.

use std::fmt::{self, Write};

use super::profiled::Workload;

const BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const PRIME: u64 = 0x0000_0100_0000_01b3;

struct Fnv(u64);

impl Write for Fnv {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0 = text.bytes().fold(self.0, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME));
        Ok(())
    }
}

impl Workload {
    /// Sixteen hexadecimal digits that change with everything a plan depends on: nodes, edges, costs and the file's
    /// limits, to the last bit of each number. Every run of one version of the program gives the same digits.
    pub fn fingerprint(&self) -> String {
        let Workload { nodes, dag, profile, limits, .. } = self;
        let mut hash = Fnv(BASIS);
        // The debug text of two different numbers differs.
        write!(hash, "{nodes:?} {:?} {profile:?} {limits:?}", dag.edges()).expect("hashing does not fail");
        format!("{:016x}", hash.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::{Profile, builtin};

    #[test]
    fn one_byte_is_hashed_as_published() {
        let mut hash = Fnv(BASIS);
        hash.write_str("a").unwrap();
        assert_eq!(hash.0, 0xaf63_dc4c_8601_ec8c);
    }

    #[test]
    fn costs_and_limits_count_and_names_of_files_do_not() {
        let base = builtin();
        let moved = Workload { name: "b".into(), source: "elsewhere/b.json".into(), ..base.clone() };
        assert_eq!(moved.fingerprint(), base.fingerprint());
        let mut slower = base.clone();
        let Profile::Piper(profile) = &mut slower.profile else { panic!("the built-in workload is a Piper profile") };
        profile.edge_bytes[0] = profile.edge_bytes[0].next_up();
        assert_ne!(slower.fingerprint(), base.fingerprint());
    }
}
