//! Tests of specifications: values, errors, canonical form.

use proptest::prelude::*;

use super::*;
use crate::fuzzing::{SPECS, fuzz_spec};

fn wrong(text: &str) -> String {
    FioSpec::parse(text).unwrap_err().to_string()
}

#[test]
fn the_example_of_the_documentation() {
    let spec = FioSpec::parse(SPECS[0]).unwrap();
    assert_eq!((spec.pattern.name, spec.requests, spec.iodepth), ("randwrite", Some(1_000_000), 32));
    assert_eq!(
        spec.sizes(RequestKind::Write).iter().map(|s| (s.bytes, s.permille)).collect::<Vec<_>>(),
        [(4096, 500), (16_384, 500)]
    );
    assert_eq!((spec.size, spec.read_permille), (Some(Amount::Bytes(1 << 30)), 300));
    assert_eq!(spec.rates, [Some(Rate::Requests(20_000_000)); 3]);
    assert_eq!(spec.distribution, Distribution::Zipf { theta: 0.95, center: None });
}

#[test]
fn canonical_form_reads_back() {
    for text in SPECS {
        let spec = FioSpec::parse(text).unwrap();
        assert_eq!(FioSpec::parse(&spec.to_string()).unwrap(), spec, "{text}");
    }
    assert_eq!(FioSpec::parse(&FioSpec::default().to_string()), Ok(FioSpec::default()));
    assert_eq!(FioSpec::parse("rw=readwrite").unwrap().pattern.name, "rw");
}

#[test]
fn sizes_of_each_direction() {
    let sizes = |text: &str| {
        let spec = FioSpec::parse(text).unwrap();
        spec.block_sizes.iter().map(|shares| shares[0].bytes >> 10).collect::<Vec<_>>()
    };
    assert_eq!(sizes("bs=8k"), [8, 8, 8]);
    assert_eq!(sizes("bs=4k,8k,16k,rw=randrw"), [4, 8, 16]);
    assert_eq!(sizes("bs=4k,8k"), [4, 8, 8]);
    assert_eq!(sizes("bs=,8k"), [4, 8, 8]);
    let split = FioSpec::parse("bssplit=4k/:16k/40:64k/,8k/100").unwrap();
    assert_eq!(split.block_sizes[0].iter().map(|s| s.permille).collect::<Vec<_>>(), [300, 400, 300]);
    assert_eq!(split.block_sizes[2], vec![SizeShare { bytes: 8192, permille: 1000 }]);
    let split = FioSpec::parse("bssplit=4k/:8k/:16k/:64k/0.5").unwrap();
    assert_eq!(split.block_sizes[0].iter().map(|s| s.permille).collect::<Vec<_>>(), [330, 330, 335, 5]);
}

#[test]
fn mixes_have_a_decimal() {
    for (text, permille, shown) in [
        ("rwmixread=18.8", 188, "18.8"),
        ("rwmixwrite=9.4", 906, "90.6"),
        ("rwmixread=30", 300, "30"),
        ("rwmixread=0.5%", 5, "0.5"),
        ("rwmixread=8.1,rwmixwrite=91.9", 81, "8.1"),
    ] {
        let spec = FioSpec::parse(text).unwrap();
        assert_eq!(spec.read_permille, permille, "{text}");
        assert!(spec.to_string().contains(&format!(",rwmixread={shown},")), "{spec}");
    }
    for text in ["rwmixread=18.85", "rwmixread=100.1", "rwmixread=.5", "rwmixread=5.", "rwmixread=1.+1"] {
        assert!(wrong(text).contains("--workload rwmixread: expected a percentage"), "{text}");
    }
}

#[test]
fn rates_have_decimals() {
    for (text, thousandths, shown) in [("3.15", 3150, "3.15"), ("20k", 20_000_000, "20000"), ("0.001", 1, "0.001")] {
        let spec = FioSpec::parse(&format!("rate_iops={text}")).unwrap();
        assert_eq!(spec.rates, [Some(Rate::Requests(thousandths)); 3], "{text}");
        assert!(spec.to_string().contains(&format!(",rate_iops={shown},")), "{spec}");
    }
}

#[test]
fn rates_of_each_direction() {
    let of = |text: &str| {
        let spec = FioSpec::parse(&format!("rw=randrw,{text}")).unwrap();
        assert_eq!(FioSpec::parse(&spec.to_string()).as_ref(), Ok(&spec), "{spec}");
        (spec.rates, spec.is_capped())
    };
    let [iops, bytes] = [Rate::Requests, Rate::Bytes].map(|unit| move |rate: u64| Some(unit(rate)));
    assert_eq!(of("rate_iops=1000,500"), ([iops(1_000_000), iops(500_000), iops(500_000)], true));
    assert_eq!(of("rate_iops=,500"), ([None, iops(500_000), iops(500_000)], true));
    assert_eq!(of("rate=1m,"), ([bytes(1 << 20), None, None], true));
    assert_eq!(of("rate=,,1m"), ([None, None, bytes(1 << 20)], false));
    assert_eq!(of("rate_iops=5,open_loop"), ([iops(5000); 3], false));
    assert!(!FioSpec::parse("rw=write,rate_iops=5,").unwrap().is_capped());
}

#[test]
fn changes_replace_what_says_the_same() {
    let changed = |changes: &str| FioSpec::changed("rw=randrw,bssplit=4k/50:8k/50,8k/100,n=5", changes);
    assert_eq!(changed("n=7,size=50%").unwrap(), "rw=randrw,bssplit=4k/50:8k/50,8k/100,n=7,size=50%");
    assert_eq!(changed("bs=4k,8k").unwrap(), "rw=randrw,n=5,bs=4k,8k");
    assert_eq!(changed("number_ios=9").unwrap(), "rw=randrw,bssplit=4k/50:8k/50,8k/100,number_ios=9");
    let open = FioSpec::changed("iodepth=8,rate=1m", "rate_iops=7,open_loop").unwrap();
    assert_eq!(open, "rate_iops=7,open_loop=");
    assert!(changed("sise=4k").unwrap_err().to_string().contains("did you mean size?"));
}

#[test]
fn errors_name_the_key_and_what_was_expected() {
    assert!(wrong("rw=randwrite,iodpeth=4").contains("--workload iodpeth: unknown key; did you mean iodepth?"));
    assert!(wrong("rw=sideways").contains("--workload rw: expected one of read, write"));
    for (text, key) in [
        ("bs=0", "bs"),
        ("bs=1000", "bs"),
        ("bs=2g", "bs"),
        ("bs=4k,4k,4k,4k", "bs"),
        ("bssplit=4k/60:8k/60", "bssplit"),
        ("bssplit=4k/50", "bssplit"),
        ("size=0", "size"),
        ("size=5x", "size"),
        ("size=101%", "size"),
        ("offset=100", "offset"),
        ("n=0", "n"),
        ("n=1.5", "n"),
        ("iodepth=0", "iodepth"),
        ("rwmixread=101", "rwmixread"),
        ("fsync=x", "fsync"),
        ("random_distribution=zipf", "random_distribution"),
        ("rate_iops=0", "rate_iops"),
        ("rate_iops=0.0001", "rate_iops"),
        ("rate_iops=1,2,3,4", "rate_iops"),
        ("rate=0", "rate"),
        ("rate=1m,rate_iops=5", "rate"),
        ("open_loop", "open_loop"),
        ("rate_iops=5,6,open_loop", "open_loop"),
        ("rate_iops=5,open_loop,iodepth=4", "iodepth"),
        ("percentage_random=0.55", "percentage_random"),
        ("bssplit=4k/50:8k/50.1", "bssplit"),
        ("sequential_size=50%", "sequential_size"),
        ("random_distribution=zipf:1:1", "random_distribution"),
        ("random_distribution=pareto:0.5:0", "random_distribution"),
        ("rate_process=even", "rate_process"),
        ("thinktime=1ms,rate_iops=5,open_loop", "thinktime"),
        ("thinktime_blocks=2", "thinktime_blocks"),
        ("thinktime=1ms,thinktime_blocks=0", "thinktime_blocks"),
        ("thinktime=1ms,thinktime_blocks_type=io", "thinktime_blocks_type"),
        ("latency_target=1ms", "latency_target"),
        ("latency_target=0,latency_window=1ms", "latency_target"),
        ("latency_window=1ms", "latency_window"),
        ("latency_percentile=99", "latency_percentile"),
        ("latency_target=1ms,latency_window=1ms,latency_percentile=99.9999", "latency_percentile"),
        ("latency_target=1ms,latency_window=1ms,rate_iops=5,open_loop", "latency_target"),
        ("rate_cycle=5", "rate_cycle"),
        ("rate_cycle=0,rate_min=5", "rate_cycle"),
        ("rate_iops_min=5,rate_min=5", "rate_min"),
        ("rate=1m,rate_min=2m", "rate_min"),
        ("rate_iops=5,4,rate_iops_min=5", "rate_iops_min"),
        ("randrepeat=2", "randrepeat"),
        ("norandommap=2", "norandommap"),
        ("rwmixread=30,rwmixwrite=30", "rwmixwrite"),
        ("io_size=1g,loops=2", "loops"),
        ("blockalign=100", "blockalign"),
        ("rw=read,rw=write", "rw"),
        ("rw", "rw"),
    ] {
        let message = wrong(text);
        assert!(
            message.starts_with(&format!("--workload {key}: ")) && message.contains("expected"),
            "{text}: {message}"
        );
    }
    assert!(wrong("").contains("expected key=value"));
    assert!(wrong("=4").contains("unknown key"));
}

/// Plain numbers are microseconds, and milliseconds of a cycle.
#[test]
fn targets_and_least_rates_are_read_as_in_fio() {
    let spec = FioSpec::parse("latency_target=200,latency_window=5s,latency_percentile=99.9,latency_run").unwrap();
    assert_eq!(spec.target, Target { time: 200_000, window: 5_000_000_000, share: 99_900, continues: true });
    let spec = FioSpec::parse("rate=2m,rate_min=1m,,5,rate_cycle=250").unwrap();
    let rates = [Some(Rate::Bytes(1 << 20)), None, Some(Rate::Bytes(5))];
    assert_eq!(spec.floor, Floor { rates, cycle: 250_000_000 });
    assert_eq!(FioSpec::changed("rw=read,rate_min=1m", "rate_iops_min=5").unwrap(), "rw=read,rate_iops_min=5");
}

proptest! {
    #[test]
    fn targets_and_least_rates_read_as_printed(
        time in 1u64..1 << 40, window in 1u64..1 << 40, share in 0u32..=100_000, continues: bool,
        least in prop::option::of((1u64..1 << 40, any::<bool>(), 1u64..100_000))
    ) {
        let share = f64::from(share) / 1000.0;
        let mut text = format!("latency_target={time}ns,latency_window={window},latency_percentile={share}");
        text += if continues { ",latency_run" } else { "" };
        if let Some((rate, of_requests, cycle)) = least {
            text += &format!(",rate_{}min={rate},,7,rate_cycle={cycle}", if of_requests { "iops_" } else { "" });
        }
        let spec = FioSpec::parse(&text);
        prop_assert_eq!(spec.is_err(), least.is_some_and(|(rate, of_requests, _)| of_requests && rate > 1_000_000_000));
        if let Ok(spec) = spec {
            prop_assert_eq!(spec.target.continues, continues);
            prop_assert_eq!(FioSpec::parse(&spec.to_string()), Ok(spec));
        }
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in ".{0,80}") {
        fuzz_spec(text.as_bytes());
    }

    #[test]
    fn no_value_makes_the_parser_panic(
        key in prop::sample::select(keys::KEYS.iter().map(|key| key.name).collect::<Vec<_>>()),
        value in "[0-9a-z/:%.,]{0,20}"
    ) {
        fuzz_spec(format!("rw=randrw,{key}={value}").as_bytes());
    }
}
