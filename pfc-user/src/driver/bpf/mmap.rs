//! A BPF array in memory: read and written without system calls while the program works on it.

use std::io;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};

/// The array as 64-bit words.
#[derive(Debug)]
pub struct Words {
    at: NonNull<AtomicU64>,
    length: usize,
}

// SAFETY: shared memory that is accessed by atomic operations alone.
unsafe impl Send for Words {}
// SAFETY: as above.
unsafe impl Sync for Words {}

impl Words {
    /// Maps the first `length` words of the array with that descriptor, which may be closed then.
    pub fn map(fd: BorrowedFd, length: usize) -> io::Result<Self> {
        let octets =
            NonZeroUsize::new(length * size_of::<u64>()).ok_or(io::ErrorKind::InvalidInput)?;
        // SAFETY: a new mapping, which touches no memory in use.
        let at = unsafe {
            mmap(
                None,
                octets,
                ProtFlags::PROT_READ | ProtFlags::PROT_WRITE,
                MapFlags::MAP_SHARED,
                fd,
                0,
            )
        }?;
        Ok(Self {
            at: at.cast(),
            length,
        })
    }

    fn all(&self) -> &[AtomicU64] {
        // SAFETY: as many words are mapped, page-aligned, until drop.
        unsafe { std::slice::from_raw_parts(self.at.as_ptr(), self.length) }
    }

    /// The word at `index`; what was written before it is seen by later loads.
    pub fn load(&self, index: usize) -> u64 {
        self.all()[index].load(Ordering::Acquire)
    }

    /// Writes the word at `index`.
    pub fn store(&self, index: usize, value: u64) {
        self.all()[index].store(value, Ordering::Release);
    }

    /// Zeroes those words.
    pub fn zero(&self, words: Range<usize>) {
        for word in &self.all()[words] {
            word.store(0, Ordering::Relaxed);
        }
    }
}

impl Drop for Words {
    fn drop(&mut self) {
        // SAFETY: mapped by us, and borrowed by nobody any more. It cannot fail for a mapping that
        // exists.
        let _ = unsafe { munmap(self.at.cast(), self.length * size_of::<u64>()) };
    }
}
