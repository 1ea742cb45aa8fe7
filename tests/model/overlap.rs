//! Concurrency in the engine, with plans by hand. An operation starts when all its predecessors have ended. A die does
//! one operation, or one for each plane with one command. Operations that become ready together start together.

use crate::drives::pick;
use crate::engine::{COMMAND, ERASE, Op, PROGRAM, SENSE, TRANSFER, Times, Unverified, config, drive, first};
use palimpsest_lab::config::DriveConfig;
use palimpsest_lab::ftl::{Ftl, LayerFigures};
use palimpsest_lab::geometry::{Extent, RequestKind};
use palimpsest_lab::nand::Flash;
use palimpsest_lab::plan::{Cause, Gate, Io};
use palimpsest_lab::rng::Rng;
use palimpsest_lab::sim::drive::Command;
use palimpsest_lab::units::Nanos;

use Op::{Erase, Program, Read};

/// A request: all its operations start after the operations of the requests in `after`.
#[derive(Debug, Clone)]
struct Step {
    ops: Vec<Op>,
    after: Vec<usize>,
}

/// A layer that plans step n for request n.
struct Graph {
    steps: Vec<Step>,
    /// Closes when the operations of a step have ended.
    ended: Vec<Gate>,
}

impl Graph {
    fn act(&mut self, io: &mut Io, number: usize) -> Flash<()> {
        let Step { ops, after } = self.steps[number].clone();
        let before: Vec<Gate> = after.iter().map(|&step| self.ended[step]).filter(|&gate| io.is_open(gate)).collect();
        let mut start = Gate::NONE;
        if !before.is_empty() {
            start = io.gate();
            before.iter().for_each(|&gate| io.link(gate, start));
        }
        let (end, request) = (io.gate(), io.request());
        ops.iter().try_for_each(|op| op.plan(io, Cause::Host, start, end))?;
        io.link(end, request);
        self.ended.push(end);
        Ok(())
    }
}

impl Ftl for Graph {
    fn unit_subpages(&self) -> u32 {
        1
    }
    fn write(&mut self, io: &mut Io, extent: Extent) -> Flash<()> {
        self.act(io, extent.sector as usize)
    }
    fn read(&mut self, _io: &mut Io, _extent: Extent) -> Flash<()> {
        Ok(())
    }
    fn trim(&mut self, _io: &mut Io, _extent: Extent) -> Flash<()> {
        Ok(())
    }
    fn flush(&mut self, _io: &mut Io) -> Flash<()> {
        Ok(())
    }
    fn recover(&mut self, _io: &mut Io) -> Flash<()> {
        Ok(())
    }
    fn check(&mut self, _io: &Io) -> Result<(), String> {
        Ok(())
    }
    fn figures(&self) -> LayerFigures {
        LayerFigures::default()
    }
}

/// When each of `steps` ended, submitted at the times `at` to a drive whose first two blocks of each plane are full.
fn ends(config: &DriveConfig, steps: &[Step], at: &[Nanos]) -> Vec<Nanos> {
    let graph = Graph { steps: steps.to_vec(), ended: Vec::new() };
    let (mut drive, mut times) = (drive(config, 2, Box::new(graph)), Times::default());
    for (number, &at) in at.iter().enumerate() {
        while drive.next_time().is_some_and(|next| next <= at) {
            drive.step(&mut times, &mut Unverified).expect("a legal plan");
        }
        drive.engine.advance_to(at);
        let extent = Extent { sector: number as u64, sectors: number as u32 + 1 };
        drive.submit(Command::new(RequestKind::Write, extent), at, &mut Unverified).expect("a legal plan");
        drive.harvest(&mut times, &mut Unverified).expect("a legal plan");
    }
    while drive.next_time().is_some() {
        drive.step(&mut times, &mut Unverified).expect("a legal plan");
    }
    let mut ends = vec![0; steps.len()];
    times.0.iter().for_each(|&(number, time)| ends[number] = time);
    assert!(ends.iter().all(|&end| end > 0), "each completes");
    ends
}

/// The least duration of an operation.
fn shortest(op: Op) -> Nanos {
    match op {
        Read(_) => COMMAND + SENSE + TRANSFER,
        Program(_) => COMMAND + TRANSFER + PROGRAM,
        Erase(_) => COMMAND + ERASE,
    }
}

/// Block and page within the block; erases have no page.
fn place(op: Op) -> (u32, Option<u32>) {
    match op {
        Read(ppn) | Program(ppn) => (ppn / 16, Some(ppn % 16)),
        Erase(block) => (block, None),
    }
}

/// Random operations of one step each, after up to two earlier steps. With `apart`, some blocks are read and others
/// written, so that memory serves no read.
fn draw(config: &DriveConfig, rng: &mut Rng, count: usize, apart: bool) -> Vec<Step> {
    let blocks = config.geometry.blocks();
    let mut next: Vec<u32> = (0..blocks).map(|block| if block % 8 < 2 { 16 } else { 0 }).collect();
    let mut steps: Vec<Step> = Vec::new();
    for number in 0..count {
        let block = rng.below(u64::from(blocks)) as u32;
        let written = &mut next[block as usize];
        let still = apart && block.is_multiple_of(8);
        let op = match if still { 0 } else { rng.below(4) } {
            0 | 1 if *written > 0 && (!apart || still) => Read(first(block) + rng.below(u64::from(*written)) as u32),
            0..=2 if *written < 16 => {
                *written += 1;
                Program(first(block) + *written - 1)
            }
            _ => {
                *written = 0;
                Erase(block)
            }
        };
        // Mostly recent steps, often the same, so that one gate starts several.
        let after = (0..rng.below(3)).filter(|_| number > 0);
        let after = after.map(|_| number.saturating_sub(1 + rng.below(12) as usize) / 4 * 4).filter(|&at| at < number);
        steps.push(Step { after: after.collect(), ops: vec![op] });
    }
    steps
}

#[test]
fn operations_wait_for_predecessors_and_no_die_does_two() {
    let seeds = 0..std::env::var("MODEL_CASES").map_or(60, |text| text.parse().expect("a number"));
    let (mut at_once, mut together, mut apart) = (0, 0, 0);
    for seed in seeds {
        let mut rng = Rng::new(seed, 0x0e51);
        let multi_plane = seed % 3 > 0;
        let settings = [
            format!("sim.scheduler={}", pick(&mut rng, &["fifo", "read-first", "host-first"])),
            format!("sim.multi_plane={multi_plane}"),
            format!("sim.plane_reads={}", if seed % 5 > 2 { "independent" } else { "aligned" }),
            format!("sim.block_order={}", if seed % 2 > 0 { "needed" } else { "planned" }),
            format!("ssd.channels={}", pick(&mut rng, &[1, 2])),
            format!("ssd.chips_per_channel={}", pick(&mut rng, &[1, 2])),
            format!("ssd.planes_per_die={}", pick(&mut rng, &[1, 2, 4])),
        ];
        let config = config(&settings.iter().map(String::as_str).collect::<Vec<_>>());
        let steps = draw(&config, &mut rng, 200, seed % 2 > 0);
        let mut now = 0;
        let at: Vec<Nanos> = (0..steps.len())
            .map(|_| {
                now += if rng.below(4) == 0 { rng.below(600_000) } else { 0 };
                now
            })
            .collect();
        let ends = ends(&config, &steps, &at);
        let latest_start = |number: usize| ends[number] - shortest(steps[number].ops[0]);
        for (number, step) in steps.iter().enumerate() {
            for &before in &step.after {
                assert!(latest_start(number) >= ends[before], "seed {seed} {settings:?}: {step:?} came too early");
                at_once += u32::from(latest_start(number) == ends[before]);
            }
            assert!(latest_start(number) >= at[number], "seed {seed} {settings:?}: {step:?} came before its request");
            let (block, page) = place(step.ops[0]);
            let plane = config.geometry.plane_of_block(block);
            for other in 0..number {
                let (other_block, other_page) = place(steps[other].ops[0]);
                let other_plane = config.geometry.plane_of_block(other_block);
                let one_die = config.geometry.die_of_plane(plane) == config.geometry.die_of_plane(other_plane);
                if !one_die || latest_start(number) >= ends[other] || latest_start(other) >= ends[number] {
                    continue;
                }
                let kinds = [steps[number].ops[0], steps[other].ops[0]].map(|op| std::mem::discriminant(&op));
                // Arrays work together and end together; read pages leave one by one.
                let one_end = ends[number] == ends[other] || matches!(step.ops[0], Read(_));
                let at_any_page = matches!(step.ops[0], Read(_)) && config.sim.independent_reads;
                let fits = page == other_page || at_any_page;
                apart += u32::from(page != other_page);
                assert!(
                    multi_plane && plane != other_plane && kinds[0] == kinds[1] && fits && one_end,
                    "seed {seed} {settings:?}: {step:?} until {} beside {:?} until {}",
                    ends[number],
                    steps[other],
                    ends[other]
                );
                together += 1;
            }
        }
    }
    let few = format!("{at_once} started at once, {together} together, {apart} of other pages: too few for a verdict");
    assert!(at_once > 20 && together > 20 && apart > 5, "{few}");
}

#[test]
fn what_is_ready_together_goes_together() {
    let planes = ["ssd.planes_per_die=4", "ssd.chips_per_channel=2", "sim.multi_plane=true"];
    let config = config(&planes);
    // Dies take planes in turn: the even planes belong to die 0.
    let plane = |plane: u32| plane * 8 + 2;
    let four: Vec<Op> = [0, 2, 4, 6].map(|index| Program(first(plane(index)))).into();
    let loaded = 4 * (COMMAND + TRANSFER);
    let one_plan = [Step { ops: four.clone(), after: vec![] }];
    assert_eq!(ends(&config, &one_plan, &[0]), [loaded + PROGRAM], "one plan");
    let gate = Step { ops: vec![Erase(plane(1))], after: vec![] };
    let behind = four.iter().map(|&op| Step { ops: vec![op], after: vec![0] });
    let steps: Vec<Step> = [gate].into_iter().chain(behind).collect();
    let end = COMMAND + ERASE;
    assert_eq!(ends(&config, &steps, &[0; 5])[1..], [end + loaded + PROGRAM; 4], "one gate");
}
