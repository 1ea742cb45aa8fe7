//! The tenants of a finished run. Ignored: the schema, which [`crate::metrics::tenants`] defines.

use crate::metrics::jobs::jobs_of;
use crate::metrics::tenants::{Tenancy, TenantFigures};
use crate::run::Session;
use palimpsest_workload::replay::Volume;
use palimpsest_workload::request::Section;

/// The figures of the tenants, if there are several, which have programmed `all` bytes of data.
pub(super) fn tenants(
    session: &Session<'_>,
    (sections, volumes): (&[Section], &[Volume]),
    timed: bool,
    all: u64,
) -> (Vec<TenantFigures>, Option<Tenancy>) {
    let recorder = &session.recorder;
    let mut tenants = match (&recorder.jobs, &recorder.volumes) {
        (Some(jobs), _) => jobs.tenants(sections, timed),
        (None, Some(of_volumes)) => of_volumes.tenants(volumes, timed),
        (None, None) => Vec::new(),
    };
    if tenants.len() < 2 {
        return (Vec::new(), None);
    }
    let owned = session.drive.io.owners.as_ref().map(|owners| {
        move |tenant: u32| {
            let subpages: u64 = match recorder.jobs {
                Some(_) => jobs_of(sections, tenant).map(|job| owners.programmed_of(job as u32)).sum(),
                None => owners.programmed_of(tenant),
            };
            subpages * u64::from(session.config.geometry.subpage_bytes)
        }
    });
    let tenancy = Tenancy::divide(&mut tenants, all, owned.as_ref().map(|owned| owned as &dyn Fn(u32) -> u64));
    (tenants, Some(tenancy))
}
