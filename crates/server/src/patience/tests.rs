//! Tests of the module `patience`.

use super::*;

#[test]
fn all_clients_share_one_budget() {
    let budget = Budget::new(100);
    let most = Mutex::new(0);
    std::thread::scope(|scope| {
        for client in 0..8 {
            let (budget, most) = (&budget, &most);
            scope.spawn(move || {
                for round in 0..50 {
                    let share = budget.take(10 + 20 * (round % 7) + client);
                    let mut most = lock(most);
                    *most = (*most).max(budget.used());
                    drop(most);
                    drop(share);
                }
            });
        }
    });
    assert_eq!(budget.used(), 0);
    let most = *lock(&most);
    assert!((90..=100).contains(&most), "at most {most} of 100 were taken");
}

#[test]
fn a_flood_of_lines_is_left_out() {
    let (log, begin) = (Log::default(), Instant::now());
    let flood: Vec<_> = (0..1000).flat_map(|_| log.lines("refused", begin)).collect();
    assert_eq!(flood, ["refused"; LOG_LINES as usize]);
    let later = log.lines("refused", begin + LOG_WINDOW);
    assert_eq!(later, ["950 more lines about clients were left out", "refused"]);
}
