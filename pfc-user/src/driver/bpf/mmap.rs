//! A BPF array in memory: read and written without system calls while the program works on it.

use std::io;
use std::mem::MaybeUninit;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use aya::Pod;
use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};

use super::pod::Plain;

const WORD: usize = size_of::<u64>();

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
        let octets = NonZeroUsize::new(length * WORD).ok_or(io::ErrorKind::InvalidInput)?;
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

    /// The value whose first word is at `index`, read word by word from there: while a program
    /// writes it, it is not one of a single moment.
    pub fn value<T: Copy>(&self, index: usize) -> T
    where
        Plain<T>: Pod,
    {
        const { assert!(size_of::<T>().is_multiple_of(WORD)) };
        let mut value = MaybeUninit::<T>::uninit();
        let octets = value.as_mut_ptr().cast::<[u8; WORD]>();
        for word in 0..size_of::<T>() / WORD {
            let read = self.load(index + word).to_ne_bytes();
            // SAFETY: within the value, which is as long.
            unsafe { octets.add(word).write(read) };
        }
        // SAFETY: all its octets were written, and any are a value.
        unsafe { value.assume_init() }
    }

    /// Like [`Self::value`], where the program may write meanwhile: read until two readings agree.
    pub fn stable<T: Copy + PartialEq>(&self, index: usize) -> T
    where
        Plain<T>: Pod,
    {
        let mut last = self.value(index);
        // Frames are microseconds apart, a reading takes nanoseconds.
        for _ in 0..1000 {
            let next = self.value(index);
            if next == last {
                break;
            }
            last = next;
        }
        last
    }

    /// Writes the value whose first word is at `index`, word by word from there.
    pub fn set<T: Copy>(&self, index: usize, value: &T)
    where
        Plain<T>: Pod,
    {
        const { assert!(size_of::<T>().is_multiple_of(WORD)) };
        for (word, octets) in (index..).zip(Plain::octets(value).as_chunks().0) {
            self.store(word, u64::from_ne_bytes(*octets));
        }
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
        let _ = unsafe { munmap(self.at.cast(), self.length * WORD) };
    }
}
