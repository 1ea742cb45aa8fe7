//! Figures of each tenant: of each section of a job file, or of each volume of a trace.
//!
//! Programmed bytes belong to the tenant that wrote the data last, also if collection moves them; bytes of records of
//! the layer, and of data from before the measurement, belong to no tenant. Where owners of data are not known (below a
//! file system, and with power cuts, which roll programs back), tenants share all programmed bytes as they share the
//! bytes that the host wrote. Ignored: reads and erases of flash by tenant.
//!
//! `tenants`, `why` and `summary` use each other: a summary has the figures of tenants.

use super::histogram::Histogram;
use super::summary::{Latencies, Latency, Requests, Throughput};
use super::why::{Explanations, Why};
use palimpsest_flash::geometry::RequestKind;
use palimpsest_flash::units::{Nanos, SECTOR_BYTES};
use palimpsest_sim::timeline::parts::{PART_NAMES, Parts, Waits};
use serde::Serialize;
use std::collections::BTreeMap;

/// A distribution of times.
pub trait Times: Default {
    /// Adds a time.
    fn add(&mut self, latency: Nanos);
    /// Adds all times of `other`.
    fn join(&mut self, other: &Self);
    /// The figures; `None` if there are no times.
    fn latency(&self) -> Option<Latency>;
}

impl Times for Histogram {
    fn add(&mut self, latency: Nanos) {
        self.record(latency);
    }

    fn join(&mut self, other: &Self) {
        self.merge(other);
    }

    fn latency(&self) -> Option<Latency> {
        Latency::of(self)
    }
}

/// The requests of a tenant: submitted requests and bytes, times of completed requests.
#[derive(Default)]
pub struct Counts<T> {
    pub requests: Requests,
    pub bytes: [u64; 2],
    pub read: T,
    pub write: T,
    other: T,
    completed: u64,
    /// Arrival of the first completed request, and the last completion.
    span: Option<(Nanos, Nanos)>,
    why: Why,
    /// Sums of the parts of waits, by the owner that caused them.
    waits: BTreeMap<Option<u32>, Parts>,
}

impl<T: Times> Counts<T> {
    /// Counts a request that is submitted.
    pub fn submitted(&mut self, kind: RequestKind, sectors: u32) {
        let bytes = u64::from(sectors) * SECTOR_BYTES;
        match kind {
            RequestKind::Read => (self.requests.read, self.bytes[0]) = (self.requests.read + 1, self.bytes[0] + bytes),
            RequestKind::Write => {
                (self.requests.write, self.bytes[1]) = (self.requests.write + 1, self.bytes[1] + bytes);
            }
            RequestKind::Trim => self.requests.trim += 1,
            RequestKind::Flush => self.requests.flush += 1,
        }
    }

    /// Uncounts a request that the drive refused.
    pub fn refused(&mut self, kind: RequestKind, sectors: u32) {
        let bytes = u64::from(sectors) * SECTOR_BYTES;
        match kind {
            RequestKind::Read => (self.requests.read, self.bytes[0]) = (self.requests.read - 1, self.bytes[0] - bytes),
            RequestKind::Write => {
                (self.requests.write, self.bytes[1]) = (self.requests.write - 1, self.bytes[1] - bytes);
            }
            RequestKind::Trim => self.requests.trim -= 1,
            RequestKind::Flush => self.requests.flush -= 1,
        }
    }

    /// Counts a request that has completed at `now`.
    pub fn completed(&mut self, kind: RequestKind, latency: Nanos, now: Nanos) {
        self.completed += 1;
        self.span = Some((self.span.map_or(Nanos::MAX, |span| span.0).min(now - latency), now));
        match kind {
            RequestKind::Read => self.read.add(latency),
            RequestKind::Write => self.write.add(latency),
            _ => self.other.add(latency),
        }
    }

    /// Adds the parts of the latency of a request, and the waits among them.
    pub fn explained(&mut self, kind: RequestKind, parts: &Parts, waits: &Waits) {
        self.why.add(kind, parts);
        for (owner, parts) in waits {
            add(self.waits.entry(*owner).or_default(), parts);
        }
    }

    fn throughput(&self) -> Option<Throughput> {
        let (begin, end) = self.span.filter(|(begin, end)| end > begin)?;
        let each_second = |number: u64| Some(number as f64 * 1e9 / (end - begin) as f64);
        let bytes_per_s = each_second(self.bytes[0] + self.bytes[1]);
        Some(Throughput { iops: each_second(self.completed), bytes_per_s })
    }
}

fn add(sums: &mut Parts, parts: &Parts) {
    sums.iter_mut().zip(parts).for_each(|(sum, part)| *sum += part);
}

/// Waits of all requests of a tenant for work that one tenant caused, itself included; null for work that no request
/// planned. Sums over the requests, by part, without parts that are 0.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs, reason = "the names are the contract's")]
pub struct WaitFigures {
    pub tenant: Option<u32>,
    pub name: Option<String>,
    pub parts_ns: BTreeMap<&'static str, Nanos>,
}

/// A tenant: number (of a section from 0 on, or that of a volume), name, measured requests, rate from the first arrival
/// to the last completion, programmed bytes, and parts of the latencies if the run records the slowest requests.
#[derive(Debug, Clone, Default, Serialize)]
#[allow(missing_docs, reason = "the names are the contract's")]
pub struct TenantFigures {
    pub tenant: u32,
    pub name: String,
    pub requests: Requests,
    pub bytes_read: u64,
    pub bytes_written: u64,
    pub latency_ns: Option<Latencies>,
    pub throughput: Throughput,
    pub bytes_programmed: u64,
    /// Share of the programmed bytes of the run; null without any.
    pub programmed_share: Option<f64>,
    /// Programmed bytes over written bytes; null without writes.
    pub write_amplification: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<Explanations>,
    /// Empty if the run does not record the slowest requests.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<WaitFigures>,
}

impl TenantFigures {
    /// The figures with the waits of `parts`; `tenant_of` must return number and name of the tenant of an owner.
    #[must_use]
    pub fn with_waits<'a, T: 'a>(
        mut self,
        parts: impl Iterator<Item = &'a Counts<T>>,
        tenant_of: impl Fn(u32) -> Option<(u32, String)>,
    ) -> Self {
        let mut sums: BTreeMap<Option<(u32, String)>, Parts> = BTreeMap::new();
        for (owner, parts) in parts.flat_map(|counts| &counts.waits) {
            add(sums.entry(owner.and_then(&tenant_of)).or_default(), parts);
        }
        let named = |(tenant, sums): (Option<(u32, String)>, Parts)| {
            let (tenant, name) = tenant.unzip();
            let parts_ns = PART_NAMES.into_iter().zip(sums).filter(|part| part.1 > 0).collect();
            WaitFigures { tenant, name, parts_ns }
        };
        self.waits = sums.into_iter().map(named).collect();
        self
    }
}

impl TenantFigures {
    /// The figures of `parts` together. Without `timed`, times are null. Programmed bytes are left out.
    pub fn of<'a, T: Times + 'a>(parts: impl Iterator<Item = &'a Counts<T>> + Clone, timed: bool) -> Self {
        let mut found = TenantFigures::default();
        let ([mut all, mut read, mut write], mut why) = ([(); 3].map(|()| T::default()), Why::default());
        for Counts { requests, bytes, read: reads, write: writes, other, why: reasons, .. } in parts.clone() {
            found.requests.read += requests.read;
            found.requests.write += requests.write;
            found.requests.trim += requests.trim;
            found.requests.flush += requests.flush;
            (found.bytes_read, found.bytes_written) = (found.bytes_read + bytes[0], found.bytes_written + bytes[1]);
            read.join(reads);
            write.join(writes);
            all.join(other);
            why.merge(reasons);
        }
        all.join(&read);
        all.join(&write);
        let sum = |one: Option<f64>, two: Option<f64>| Some(one.unwrap_or(0.0) + two?).or(one);
        for Throughput { iops, bytes_per_s } in parts.filter(|_| timed).filter_map(Counts::throughput) {
            found.throughput.iops = sum(found.throughput.iops, iops);
            found.throughput.bytes_per_s = sum(found.throughput.bytes_per_s, bytes_per_s);
        }
        let latencies = || Latencies { all: all.latency(), read: read.latency(), write: write.latency() };
        TenantFigures { latency_ns: timed.then(latencies), why: why.explanations(), ..found }
    }
}

/// All tenants together: whether programmed bytes belong to owners of data or are shared as host writes
/// (`owners`, `host_writes`), bytes programmed, and bytes among them that belong to no tenant.
#[derive(Debug, Clone, Serialize)]
#[allow(missing_docs, reason = "the names are the contract's")]
pub struct Tenancy {
    pub programmed_by: &'static str,
    pub bytes_programmed: u64,
    pub bytes_without_tenant: u64,
}

impl Tenancy {
    /// Divides the programmed bytes `all` among `tenants`: by `owned`, or as host writes.
    pub fn divide(tenants: &mut [TenantFigures], all: u64, owned: Option<&dyn Fn(u32) -> u64>) -> Self {
        let written: u64 = tenants.iter().map(|tenant| tenant.bytes_written).sum();
        for tenant in &mut *tenants {
            let by_writes = || u128::from(all) * u128::from(tenant.bytes_written) / u128::from(written.max(1));
            let programmed = owned.map_or_else(|| by_writes() as u64, |owned| owned(tenant.tenant));
            tenant.bytes_programmed = programmed;
            tenant.programmed_share = (all > 0).then(|| programmed as f64 / all as f64);
            let amplification = programmed as f64 / tenant.bytes_written as f64;
            tenant.write_amplification = (tenant.bytes_written > 0).then_some(amplification);
        }
        Tenancy {
            programmed_by: if owned.is_some() { "owners" } else { "host_writes" },
            bytes_programmed: all,
            bytes_without_tenant: all - tenants.iter().map(|tenant| tenant.bytes_programmed).sum::<u64>(),
        }
    }
}

#[cfg(test)]
mod tests;
