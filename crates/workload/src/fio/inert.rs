//! fio's keys that set no field of a specification: keys without effect on a drive, and keys that no drive can play.
//!
//! The lists cover fio's options and the options of its engines. A name may carry the one value that is accepted, as in
//! `zonemode=none`. A switch of the refused keys is accepted when off. `docs/workloads.md` has these tables.

/// Keys that cannot change a simulation, by the reason.
pub const ACCEPTED: &[(&str, &str)] = &[
    (
        "reports and logs: this program has its own",
        "name description comm group_reporting unified_rw_reporting per_job_logs write_bw_log write_lat_log \
         write_iops_log write_hist_log write_iolog log_entries log_avg_msec log_hist_msec log_hist_coarseness \
         log_window_value log_max_value log_offset log_prio log_issue_time log_compression log_compression_cpus \
         log_store_compressed log_alternate_epoch log_unix_epoch log_alternate_epoch_clock_id block_error_percentiles \
         bwavgtime iopsavgtime stats clat_percentiles lat_percentiles slat_percentiles percentile_list \
         significant_figures disk_util disable_lat disable_clat disable_slat disable_bw_measurement disable_bw \
         gtod_reduce unit_base error_dump",
    ),
    (
        "processes, processors and memory of the host: the host takes no time",
        "thread cpumask cpus_allowed cpus_allowed_policy numa_cpu_nodes numa_mem_policy nice prio prioclass priohint \
         uid gid lockmem mem iomem iomem_align mem_align hugepage-size gpu_dev_id gpu_dev_ids cuda_io rocm_io cgroup \
         cgroup_nodelete cgroup_weight clocksource gtod_cpu job_start_clock_id io_submit_mode thinktime_spin \
         ioscheduler iodepth_batch_complete_max create_serialize softrandommap thp",
    ),
    (
        "page cache and file system of the host: requests go to the drive",
        "direct buffered invalidate fallocate fadvise_hint create_fsync create_on_open unlink unlink_each_loop \
         allow_file_create allow_mounted_write lockfile unique_filename filetype overwrite fsync_on_close",
    ),
    (
        "contents of data: the drive stores any contents alike",
        "zero_buffers refill_buffers scramble_buffers buffer_pattern buffer_compress_percentage \
         buffer_compress_chunk dedupe_percentage dedupe_mode dedupe_global dedupe_working_set_percentage",
    ),
    (
        "form of a verification: every byte is compared",
        "verify_interval verify_offset verify_pattern verify_pattern_interval verify_fatal verify_dump verify_async \
         verify_async_cpus verify_policy verifysort verifysort_nr verify_write_sequence verify_header_seed \
         experimental_verify verify_state_save",
    ),
    ("errors: a simulated request has none to continue after", "continue_on_error ignore_error exitall_on_error"),
    (
        "the way of a request through the host: commands of the drive are the same",
        "hipri hipri_percentage fixedbufs registerfiles sqthread_poll sqthread_poll_cpu nonvectored force_async \
         nowait uncached userspace_reap libaio_vectored cmd_type libblkio_driver libblkio_path \
         libblkio_pre_connect_props libblkio_num_entries libblkio_queue_size libblkio_pre_start_props \
         libblkio_vectored libblkio_wait_mode libblkio_force_enable_completion_eventfd no_completion_thread xnvme_be \
         xnvme_async xnvme_sync xnvme_admin xnvme_mem xnvme_iovec xnvme_dev_nsid xnvme_dev_subnqn",
    ),
    (
        "priorities and atomic writes of commands: the drive has neither",
        "cmdprio_percentage cmdprio_class cmdprio_hint cmdprio cmdprio_bssplit atomic",
    ),
];

const SERVER: &str = "needs a server instead of a drive";
const FILES: &str = "needs a file system instead of a drive";

/// Keys that change the requests in a way that no simulated drive can play, by the reason.
pub const REFUSED: &[(&str, &str)] = &[
    (
        SERVER,
        "hostname port protocol listen pingpong interface mss nodelay netsplice ttl window_size bindname verb uri \
         nfs_url pool cont chunk_size object_class svcl clientname clustername rbdname conf busy_poll touch_objects \
         volume brick namenode hdfs_use_direct hdfsdirectory single_instance initiator http_host http_mode \
         http_object_mode http_pass http_s3_key http_s3_keyid http_s3_region http_s3_security_token \
         http_s3_sse_customer_algorithm http_s3_sse_customer_key http_s3_storage_class http_swift_auth_token \
         http_user http_verbose https",
    ),
    (FILES, "donorname inplace stat_type opendir file_append pre_read end_syncfs sync_file_range"),
    (
        "needs zones of other kinds than those of a drive",
        "ignore_zone_limits recover_zbd_write_error write_zone_remainder",
    ),
    (
        "needs a command that the drive lacks",
        "num_range=1 write_mode=write read_mode=read sg_write_mode=write verify_mode verify_bytchk deac cdb_len \
         readfua stream_id md_per_io_size pi_act pi_chk apptag apptag_mask skip_bad \
         libblkio_write_zeroes_on_trim write_barrier",
    ),
    ("runs programs", "exec_prerun exec_postrun program arguments grace_time std_redirect"),
    ("loads the host's processors", "cpuload cpumode cpuchunks exit_on_io_done thinkcycles"),
    ("needs the state of an earlier run", "verify_only verify_state_load"),
    (
        "plays recorded requests, which --workload plays itself",
        "read_iolog read_iolog_chunked replay_no_stall replay_redirect replay_scale replay_align replay_time_scale \
         replay_skip merge_blktrace_file merge_blktrace_scalars merge_blktrace_iters",
    ),
    (
        "not simulated",
        "trim_percentage trim_verify_zero trim_backlog trim_backlog_batch ramp_size max_latency sprandom \
         spr_num_regions spr_op spr_cs bs_is_seq_rand offset_align rate_ignore_thinktime create_only profile",
    ),
    (
        "ends a job at a steady rate, which only runtime, number_ios and latency_target do here",
        "steadystate=0 ss=0 steadystate_duration ss_dur steadystate_ramp_time ss_ramp steadystate_check_interval \
         ss_interval",
    ),
    ("draws a file before an address, and requests draw addresses here", "file_service_type=sequential"),
    ("delays requests in the host until overlapping ones end", "serialize_overlap"),
];

/// Expected values of `ioengine`.
pub const ENGINE: &str = "libaio, io_uring, posixaio, sync, psync or another that submits block requests";

/// Engines, by the reason why no drive can play them; empty: a drive can.
const ENGINES: &[(&str, &str)] = &[
    ("", "libaio io_uring io_uring_cmd posixaio solarisaio windowsaio spdk spdk_bdev xnvme libblkio null cpp_null"),
    ("", WAITING),
    (
        SERVER,
        "net netsplice rdma rbd rados http nbd nfs gfapi gfapi_async libhdfs libiscsi dfs ime_psync ime_psyncv ime_aio",
    ),
    (FILES, "e4defrag falloc ftruncate filecreate filestat filedelete dircreate dirstat dirdelete splice"),
    ("needs memory instead of a drive", "libpmem dev-dax mmap page_fault"),
    ("needs flash without a controller", "mtd"),
    ("runs programs", "exec"),
    ("loads the host's processors", "cpuio"),
];

/// Engines that wait for each request.
const WAITING: &str = "sync psync vsync pvsync pvsync2 sg libcufile libhipfile libzbc";

/// Expected values of `verify`.
pub const VERIFY: &str = "a method such as crc32c, or 0 for none";

/// The hint for an unknown key.
pub const EXPECTED: &str = "expected a key of `palimpsest help workloads`";

fn has(names: &str, name: &str) -> bool {
    names.split(' ').any(|other| other.split('=').next() == Some(name))
}

/// The keys that cannot change a simulation.
pub fn accepted_names() -> impl Iterator<Item = &'static str> {
    ACCEPTED.iter().flat_map(|(_, names)| names.split(' '))
}

/// True if the key cannot change a simulation.
pub fn accepted(name: &str) -> bool {
    accepted_names().any(|other| other == name)
}

/// Keys whose value may count zones, as in `3z`.
const COUNT_ZONES: &[&str] = &["size", "io_size", "offset", "offset_increment", "zoneskip"];

/// The reason to refuse a key with a value; `None` for other keys, and for a value that is off.
pub fn refused(name: &str, value: &str) -> Option<&'static str> {
    match (name, value) {
        ("ioengine", engine) => ENGINES.iter().find(|(_, names)| has(names, engine)).map(|&(why, _)| why),
        (name, zones) if COUNT_ZONES.contains(&name) => {
            let number = zones.strip_suffix('z').filter(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
            number.map(|_| "counts zones, whose size is zonesize; expected bytes")
        }
        (_, "0") => None,
        (name, value) => {
            let (why, names) = REFUSED.iter().find(|(_, names)| has(names, name))?;
            let is_off = names.split(' ').any(|other| other.split_once('=') == Some((name, value)));
            (!is_off).then_some(*why)
        }
    }
    .filter(|why| !why.is_empty())
}

/// True for a key of [`REFUSED`] whose value is off.
pub fn is_off(name: &str) -> bool {
    REFUSED.iter().any(|(_, names)| has(names, name))
}

/// Whether an engine waits for each request; `None` for an engine that submits no block requests.
pub fn waits(engine: &str) -> Option<bool> {
    let is_known = ENGINES.iter().any(|(why, names)| why.is_empty() && has(names, engine));
    is_known.then(|| has(WAITING, engine))
}

/// Whether a method of verification reads back.
pub fn verifies(method: &str) -> Option<bool> {
    const METHODS: &str = "md5 crc64 crc32c crc32c-intel crc32 crc16 crc7 xxhash sha256 sha512 sha1 sha3-224 sha3-256 \
                           sha3-384 sha3-512 meta pattern pattern_hdr null";
    match method {
        "0" | "none" => Some(false),
        other => METHODS.split(' ').any(|known| known == other).then_some(true),
    }
}

#[cfg(test)]
mod tests;
