//! The system call `bpf`, for commands that aya does not give or has other habits with.

use std::io;

/// Performs the command with `attributes`, the part of `union bpf_attr` for it. The kernel takes
/// what it knows beyond them for zero.
///
/// # Safety
///
/// The kernel may read and write at all addresses in the attributes as the command says.
pub unsafe fn bpf<T>(command: libc::c_long, attributes: &mut T) -> io::Result<libc::c_long> {
    // SAFETY: the attributes are as long as the kernel is told; for the rest as the caller says.
    match unsafe { libc::syscall(libc::SYS_bpf, command, attributes, size_of::<T>()) } {
        done if done < 0 => Err(io::Error::last_os_error()),
        done => Ok(done),
    }
}
