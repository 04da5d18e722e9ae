//! Catches the panics of handlers and makes errors of them that say where.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};
use std::sync::Once;

use poolwright_core::{Class, TaskError};

thread_local! {
    /// A handler is being polled on this thread.
    static WATCHED: Cell<bool> = const { Cell::new(false) };
    /// Where the last panic under watch began.
    static PLACE: Cell<Option<String>> = const { Cell::new(None) };
}

/// Lets errors made of panics name the file and line.
///
/// Only the process-wide panic hook is told the place, so a program says once, when it starts, that it wants this; a
/// second call does nothing. The hook that was there still runs, and other threads are not concerned. Without it, errors
/// hold the message alone.
pub fn remember_places() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            note_place(info);
            before(info);
        }));
    });
}

fn note_place(info: &PanicHookInfo<'_>) {
    // A panic while the thread ends finds its variables gone; then there is no handler to tell of either.
    let watched = WATCHED.try_with(Cell::get).unwrap_or(false);
    if let (true, Some(location)) = (watched, info.location()) {
        let _ = PLACE.try_with(|place| place.set(Some(location.to_string())));
    }
}

/// Runs a part of a handler; a panic is an error of class `panicked`.
///
/// What the part had borrowed must not be used after an error: it may be half changed.
pub(crate) fn catch<T>(part: impl FnOnce() -> T) -> Result<T, TaskError> {
    let outer = WATCHED.replace(true);
    PLACE.set(None);
    let result = catch_unwind(AssertUnwindSafe(part));
    WATCHED.set(outer);
    result.map_err(|payload| {
        let message = message_of(&*payload);
        // The value may be anything, also one that panics when it is dropped.
        if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
            std::mem::forget(again);
        }
        let place = PLACE.take().map(|place| format!(" at {place}")).unwrap_or_default();
        TaskError::new(Class::Panicked, format!("panicked{place}: {message}"))
    })
}

fn message_of(payload: &(dyn Any + Send)) -> String {
    match (payload.downcast_ref::<&str>(), payload.downcast_ref::<String>()) {
        (Some(text), _) => (*text).to_owned(),
        (_, Some(text)) => text.clone(),
        _ => "with a value that is no text".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_of_any_value_becomes_an_error() {
        struct Bomb;
        impl Drop for Bomb {
            fn drop(&mut self) {
                panic!("while dropping");
            }
        }
        assert_eq!(catch(|| 5).unwrap(), 5);
        let number = catch(|| std::panic::panic_any(5)).unwrap_err();
        assert_eq!(number.class(), Class::Panicked);
        // With its place or without: the hook is the process's, and the other test may have set it already.
        let said = number.to_string();
        assert!(said.starts_with("panicked") && said.ends_with(": with a value that is no text"), "{said}");
        let bomb = catch(|| std::panic::resume_unwind(Box::new(Bomb))).unwrap_err();
        assert_eq!(bomb.class(), Class::Panicked);
    }

    #[test]
    fn a_place_is_told_once_asked_for_and_only_of_its_own_panic() {
        remember_places();
        remember_places();
        let error = catch(|| panic!("no {}", "luck")).unwrap_err().to_string();
        assert!(error.contains("panic.rs:") && error.ends_with(": no luck"), "{error}");
        let raised = catch(|| std::panic::resume_unwind(Box::new("from elsewhere"))).unwrap_err();
        assert_eq!(raised.to_string(), "panicked: from elsewhere");
    }
}
