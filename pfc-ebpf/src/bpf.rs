//! Helpers of the BPF programs, which userspace has no use for.

pub mod atomic;
pub mod packet;
#[cfg(feature = "trace")]
pub mod trace;
pub mod verifier;

/// Makes the handler of panics that an object has to have.
#[macro_export]
macro_rules! handle_panics {
    () => {
        #[cfg(not(test))]
        #[panic_handler]
        fn panic(_: &core::panic::PanicInfo) -> ! {
            // The verifier refuses a program in which this could be reached.
            loop {}
        }
    };
}
