//! Sharing compared with progressive filling in floating point, and with results computed by hand.

use super::*;

/// Path that takes all of some links of capacity 1.
fn on(links: &[u32]) -> Path<'_> {
    Path { links: [links, &[]], parts: &[], speed: 1 }
}

/// Transfers that end next, by slot.
fn next(sharing: &mut Sharing, now: i64) -> Vec<(u32, i64)> {
    let mut ends = vec![];
    sharing.share(now, |slot, _, end| ends.push((slot, end)));
    ends.sort_unstable();
    ends
}

#[test]
fn two_on_a_link_take_half_each() {
    let mut sharing = Sharing::new(1, vec![]);
    sharing.join(0, on(&[0]), 100, 0);
    assert_eq!(next(&mut sharing, 0), [(0, 100)]);
    sharing.join(1, on(&[0]), 100, 50);
    assert_eq!(next(&mut sharing, 50), [(0, 150)]);
    sharing.leave(0);
    assert_eq!(next(&mut sharing, 150), [(1, 200)]);
}

#[test]
fn what_one_cannot_use_another_gets() {
    // 0 and 1 share link 0, 1 and 2 and 3 share link 1: 1, 2 and 3 get a third, so 0 gets two.
    let mut sharing = Sharing::new(2, vec![]);
    sharing.join(1, on(&[0, 1]), 90, 0);
    sharing.join(2, on(&[1]), 90, 0);
    sharing.join(3, on(&[1]), 90, 0);
    sharing.join(0, on(&[0]), 90, 0);
    assert_eq!(next(&mut sharing, 0), [(0, 135)]);
    let rates: Vec<(u128, u128)> = sharing.flows.iter().map(|flow| (flow.rate.parts, flow.rate.of)).collect();
    assert_eq!(rates, [(2, 3), (1, 3), (1, 3), (1, 3)]);
    // Those that end together do so in the same tick.
    sharing.leave(0);
    assert_eq!(next(&mut sharing, 135), [(1, 270), (2, 270), (3, 270)]);
}

#[test]
fn fast_transfers_leave_a_wide_link_to_slow_ones() {
    // A wide link of 100: 0 and 1 are held to 10 by narrow links of their own, 2 has the wide one alone.
    let mut sharing = Sharing::new(3, vec![100, 10, 10]);
    let path = |links, speed| Path { links: [links, &[]], parts: &[], speed };
    sharing.join(0, path(&[0, 1], 10), 100, 0);
    sharing.join(1, path(&[0, 2], 10), 100, 0);
    assert_eq!(next(&mut sharing, 0), [(0, 100), (1, 100)], "together they take a fifth of it");
    sharing.join(2, path(&[0], 100), 80, 0);
    assert_eq!(next(&mut sharing, 0), [(2, 100)], "and leave four fifths: 80 ticks become 100");
    let rates: Vec<(u128, u128)> = sharing.flows.iter().map(|flow| (flow.rate.parts, flow.rate.of)).collect();
    assert_eq!(rates, [(1, 1), (1, 1), (4, 5)]);
    // Two on one narrow link take half each, and the wide one has more left.
    sharing.join(3, path(&[0, 1], 10), 100, 0);
    next(&mut sharing, 0);
    let rates: Vec<(u128, u128)> = sharing.flows.iter().map(|flow| (flow.rate.parts, flow.rate.of)).collect();
    assert_eq!(rates, [(1, 2), (1, 1), (4, 5), (1, 2)]);
}

#[test]
fn a_transfer_of_several_devices_takes_a_part_of_each_link() {
    // Two devices of one end send over a link each, half of the bytes, and 1 has the first of these links alone.
    let mut sharing = Sharing::new(2, vec![10, 10]);
    let (half, links) = ([WHOLE / 2; 2], [0, 1]);
    sharing.join(0, Path { links: [&links, &[]], parts: &half, speed: 20 }, 100, 0);
    assert_eq!(next(&mut sharing, 0), [(0, 100)]);
    sharing.join(1, Path { links: [&[0], &[]], parts: &[], speed: 10 }, 100, 0);
    next(&mut sharing, 0);
    // At equal speeds of both, v/2 + v = 10.
    let rates: Vec<(u128, u128)> = sharing.flows.iter().map(|flow| (flow.rate.parts, flow.rate.of)).collect();
    assert_eq!(rates, [(1, 3), (2, 3)]);
}

/// Ends of transfers that start at once, by progressive filling in floating point from end to end.
fn filled_up(capacities: &[u64], flows: &[(Vec<u32>, Vec<u32>, u64, i64)]) -> Vec<f64> {
    let part = |flow: usize, link: usize| {
        let at = flows[flow].0.iter().position(|&own| own as usize == link);
        at.map_or(0.0, |at| f64::from(flows[flow].1[at]) / f64::from(WHOLE))
    };
    let mut left: Vec<f64> = flows.iter().map(|flow| flow.3 as f64).collect();
    let (mut ends, mut now) = (vec![0.0; flows.len()], 0.0);
    while ends.contains(&0.0) {
        let live: Vec<usize> = (0..flows.len()).filter(|&flow| ends[flow] == 0.0).collect();
        let mut speeds = vec![None; flows.len()];
        while live.iter().any(|&flow| speeds[flow].is_none()) {
            let rest = |link: usize| {
                let taken: f64 = live.iter().map(|&flow| part(flow, link) * speeds[flow].unwrap_or(0.0)).sum();
                let open: f64 = live.iter().filter(|&&f| speeds[f].is_none()).map(|&f| part(f, link)).sum();
                (capacities[link] as f64 - taken).max(1e-9) / open
            };
            let open: Vec<usize> = live.iter().copied().filter(|&flow| speeds[flow].is_none()).collect();
            let used = |link: &usize| open.iter().any(|&flow| part(flow, *link) > 0.0);
            let links: Vec<(f64, usize)> = (0..capacities.len()).filter(used).map(|link| (rest(link), link)).collect();
            let (level, link) = links.into_iter().min_by(|a, b| a.0.total_cmp(&b.0)).unwrap();
            let slowest = open.iter().copied().min_by_key(|&flow| flows[flow].2).unwrap();
            if flows[slowest].2 as f64 <= level {
                speeds[slowest] = Some(flows[slowest].2 as f64);
            } else {
                open.iter().filter(|&&flow| part(flow, link) > 0.0).for_each(|&flow| speeds[flow] = Some(level));
            }
        }
        let rate = |flow: usize| speeds[flow].unwrap() / flows[flow].2 as f64;
        let step = live.iter().map(|&flow| left[flow] / rate(flow)).fold(f64::INFINITY, f64::min);
        now += step;
        for &flow in &live {
            left[flow] -= step * rate(flow);
            if left[flow] < 1e-6 * flows[flow].3 as f64 {
                ends[flow] = now;
            }
        }
    }
    ends
}

#[test]
fn ends_are_those_of_filling_up_in_floating_point() {
    let mut state = 7u64;
    let mut next = move |n: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % n
    };
    for round in 0..300 {
        let links = 1 + next(5) as usize;
        let capacities: Vec<u64> = (0..links).map(|_| 1_000 * (1 + next(400))).collect();
        let flows: Vec<(Vec<u32>, Vec<u32>, u64, i64)> = (0..2 + next(6))
            .map(|_| {
                let own: Vec<u32> = (0..links as u32).filter(|_| next(2) == 0).collect();
                let own = if own.is_empty() { vec![next(links as u64) as u32] } else { own };
                let parts: Vec<u32> = own.iter().map(|_| WHOLE / (1 + next(3) as u32)).collect();
                let fits = own
                    .iter()
                    .zip(&parts)
                    .map(|(&link, &parts)| capacities[link as usize] * u64::from(WHOLE) / u64::from(parts));
                let speed = fits.min().unwrap() / (1 + next(3));
                (own, parts, speed, 100_000 + next(900_000) as i64)
            })
            .collect();
        let mut sharing = Sharing::new(links, capacities.clone());
        for (slot, (own, parts, speed, ticks)) in (0..).zip(&flows) {
            sharing.join(slot, Path { links: [own, &[]], parts, speed: *speed }, *ticks, 0);
        }
        let (mut ends, mut clock) = (vec![0.0; flows.len()], vec![]);
        sharing.share(0, |slot, version, end| clock.push((end, slot, version)));
        while let Some(at) = (0..clock.len()).min_by_key(|&at| clock[at]) {
            let (end, slot, version) = clock.swap_remove(at);
            if sharing.version(slot) == version {
                ends[slot as usize] = end as f64;
                sharing.leave(slot);
                sharing.share(end, |slot, version, end| clock.push((end, slot, version)));
            }
        }
        for (own, expected) in ends.iter().zip(filled_up(&capacities, &flows)) {
            assert!((own - expected).abs() <= 20.0 + 1e-5 * expected, "{round}: {own} {expected} {flows:?}");
        }
    }
}

#[test]
fn transfers_without_links_run_alone() {
    let mut sharing = Sharing::new(0, vec![]);
    sharing.join(0, on(&[]), 7, 1);
    assert_eq!(next(&mut sharing, 1), [(0, 8)]);
    sharing.join(1, on(&[]), 7, 2);
    assert_eq!(next(&mut sharing, 2), [(1, 9)]);
}

#[test]
fn many_thousand_sharers_are_rounded_and_still_end() {
    let mut rate = Rate::WHOLE;
    for by in 2..2000 {
        let share = rate.times(1, by);
        assert!(share.parts > 0 && share.of <= FINEST);
        rate = rate.less(share);
    }
    assert!(rate.compare(Rate::WHOLE) == Ordering::Less);
}
