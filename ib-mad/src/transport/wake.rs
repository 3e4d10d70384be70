//! A descriptor that ends waits. Systems without the host's transports have none.

#[cfg(all(feature = "host", target_os = "linux"))]
pub(super) use self::host::Wake;
#[cfg(not(all(feature = "host", target_os = "linux")))]
pub(super) use self::none::Wake;

#[cfg(all(feature = "host", target_os = "linux"))]
mod host {
    use std::os::fd::{AsFd, OwnedFd};

    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

    /// Ends waits while its descriptor is readable.
    #[derive(Default)]
    pub(in super::super) struct Wake(pub(in super::super) Option<OwnedFd>);

    impl Wake {
        /// True if the descriptor is readable now.
        pub(in super::super) fn is_up(&self) -> bool {
            let Some(fd) = &self.0 else { return false };
            let mut fds = [PollFd::new(fd.as_fd(), PollFlags::POLLIN)];
            poll(&mut fds, PollTimeout::ZERO).is_ok_and(|ready| ready > 0)
        }
    }
}

#[cfg(not(all(feature = "host", target_os = "linux")))]
mod none {
    /// Nothing ends a wait.
    #[derive(Default)]
    pub(in super::super) struct Wake();

    impl Wake {
        /// Always false.
        pub(in super::super) fn is_up(&self) -> bool {
            false
        }
    }
}
