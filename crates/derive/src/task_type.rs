//! `#[derive(TaskType)]`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, Error, Result};

use crate::attribute::{Place, Task};

/// The impl.
pub(crate) fn expand(input: &DeriveInput) -> Result<TokenStream> {
    let ident = &input.ident;
    if let Data::Union(_) = input.data {
        return Err(Error::new(ident.span(), "a union cannot be a payload: it has no JSON"));
    }
    if let Some(lifetime) = input.generics.lifetimes().next() {
        let message = "a payload outlives its caller, so it borrows nothing: take `String` for `&str`, `Vec` for a slice";
        return Err(Error::new_spanned(lifetime, message));
    }
    let task = Task::read(&input.attrs, Place::Type)?;
    let Some(name) = &task.name else {
        let message = format!(
            "`{ident}` has no task name: write `#[task(\"some:name\")]` above it, with the name from queues.toml"
        );
        return Err(Error::new(ident.span(), message));
    };
    let handler = task.handler();
    let (impl_generics, type_generics, where_clause) = input.generics.split_for_impl();
    Ok(quote! {
        #[automatically_derived]
        impl #impl_generics #handler::TaskType for #ident #type_generics #where_clause {
            const NAME: &'static str = #name;
        }
    })
}
