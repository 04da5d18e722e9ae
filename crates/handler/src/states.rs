//! The application's own values that handlers ask for by type.

use std::any::{Any, TypeId, type_name};
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

/// Values by type, set once before the start.
#[derive(Clone, Default)]
pub struct States(HashMap<TypeId, (&'static str, Arc<dyn Any + Send + Sync>)>);

impl States {
    /// Adds a value; one of the same type is replaced and returned as true.
    pub fn insert<T: Clone + Send + Sync + 'static>(&mut self, value: T) -> bool {
        self.0.insert(TypeId::of::<T>(), (type_name::<T>(), Arc::new(value))).is_some()
    }

    /// A clone of the value of this type.
    #[must_use]
    pub fn get<T: Clone + Send + Sync + 'static>(&self) -> Option<T> {
        let (_, value) = self.0.get(&TypeId::of::<T>())?;
        value.downcast_ref::<T>().cloned()
    }

    /// A value of the type with this id is here.
    #[must_use]
    pub fn has(&self, id: TypeId) -> bool {
        self.0.contains_key(&id)
    }
}

impl fmt::Debug for States {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.values().map(|(name, _)| name)).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_found_by_its_type() {
        let mut states = States::default();
        assert!(!states.insert(7_u32));
        assert!(states.insert(8_u32));
        assert_eq!((states.get::<u32>(), states.get::<u64>()), (Some(8), None));
        assert!(states.has(TypeId::of::<u32>()));
    }
}
