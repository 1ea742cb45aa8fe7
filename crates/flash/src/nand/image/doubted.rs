//! Recovery of a synchronized image after a crash of the machine. The system writes 4 KiB units to disk in any order,
//! so a record newer than the last flush may exist without its data. Such a program counts as cut off: its page is
//! torn. Ignored: writes of partial units.

use super::mount::Fault;
use super::record::{PageRecord, Stored};
use crate::nand::{Nand, TORN};
use std::io;

impl Nand {
    /// Marks subpages of page `ppn` as torn whose program left bytes that do not match their checksums. If the spare
    /// area or the levels do not match, all subpages are torn. Returns whether any subpage is.
    pub(super) fn tear_what_is_not_whole(
        &mut self,
        ppn: u32,
        record: &mut PageRecord,
        version: u8,
    ) -> Result<bool, Fault> {
        let width = self.geometry.subpages_per_page;
        let image = self.payload.image.as_deref().expect("an image");
        let matches = |at: u64, length: u32, check: u32| -> io::Result<bool> {
            let mut bytes = vec![0; length as usize];
            image.medium.read(at, &mut bytes)?;
            Ok(crc32fast::hash(&bytes) == check)
        };
        let spare = record.spare == 0 || matches(image.layout.spare(ppn, version), record.spare, record.spare_check)?;
        let levels = self.part.code.is_none() || image.levels(ppn, 0).is_some();
        // Programs that left a mismatch, by number: all of their subpages are torn.
        let mut wrong = Vec::new();
        for (psn, subpage) in (u64::from(ppn * width)..).zip(&record.subpages) {
            let bytes = subpage.stored != Stored::Bytes
                || matches(image.layout.cells(psn), self.geometry.subpage_bytes, subpage.check)?;
            let own = subpage.own == 0 || matches(image.layout.own(psn), subpage.own, subpage.own_check)?;
            if !(spare && levels && bytes && own) {
                wrong.push(subpage.sequence);
            }
        }
        let torn = record.subpages.iter_mut().filter(|subpage| wrong.contains(&subpage.sequence));
        torn.for_each(|subpage| {
            (subpage.logical, subpage.stored, subpage.check, subpage.own) = (TORN, Stored::Nothing, 0, 0);
        });
        if !spare {
            record.spare = 0;
        }
        Ok(!wrong.is_empty())
    }
}
