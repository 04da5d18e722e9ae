//! `#[derive(Tasks)]`: what an enum of tasks becomes. What one variant becomes is in `fields`.

use std::collections::HashMap;

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::ext::IdentExt;
use syn::{Data, DataEnum, DeriveInput, Error, Ident, Path, Result, Variant};

use crate::attribute::{Place, Task};
use crate::fields::{self, Rules};
use crate::name;

/// The impl.
pub(crate) fn expand(input: &DeriveInput) -> Result<TokenStream> {
    let data = variants(input)?;
    let task = Task::read(&input.attrs, Place::Enum)?;
    let handler = task.handler();
    let rules = Rules::of_enum(&input.attrs)?;
    let names = names(data, &task)?;
    let mut arms = Arms::default();
    for (variant, name) in data.variants.iter().zip(&names) {
        arms.add(&input.ident, variant, name, &handler, &rules)?;
    }
    Ok(arms.into_impl(&input.ident, &names, &handler))
}

fn variants(input: &DeriveInput) -> Result<&DataEnum> {
    let ident = &input.ident;
    let Data::Enum(data) = &input.data else {
        let message = format!(
            "`Tasks` is for an enum, with a task type for each variant; for `{ident}` write \
             `#[derive(TaskType)] #[task(\"some:name\")]`"
        );
        return Err(Error::new(ident.span(), message));
    };
    if data.variants.is_empty() {
        return Err(Error::new(ident.span(), format!("`{ident}` has no variant, so it names no task")));
    }
    if let Some(parameter) = input.generics.params.first() {
        let message = "an enum of tasks takes no parameters: its names must say which type a payload has";
        return Err(Error::new_spanned(parameter, message));
    }
    Ok(data)
}

/// The task type of each variant, all different.
fn names(data: &DataEnum, task: &Task) -> Result<Vec<String>> {
    let prefix = task.prefix.as_ref().map(syn::LitStr::value).unwrap_or_default();
    let mut seen: HashMap<String, Ident> = HashMap::new();
    let mut names = Vec::new();
    for variant in &data.variants {
        let (name, span) = name_of(variant, &prefix)?;
        if let Some(other) = seen.insert(name.clone(), variant.ident.clone()) {
            let message = format!("`{}` and `{other}` have the same task type `{name}`", variant.ident);
            return Err(Error::new(span, message));
        }
        names.push(name);
    }
    Ok(names)
}

fn name_of(variant: &Variant, prefix: &str) -> Result<(String, Span)> {
    if let Some(name) = Task::read(&variant.attrs, Place::Variant)?.name {
        return Ok((name.value(), name.span()));
    }
    let name = format!("{prefix}{}", name::snake_case(&variant.ident.unraw().to_string()));
    let span = variant.ident.span();
    name::check(&name, span)?;
    Ok((name, span))
}

/// The arms of the three functions.
#[derive(Default)]
struct Arms {
    name: Vec<TokenStream>,
    encode: Vec<TokenStream>,
    decode: Vec<TokenStream>,
}

impl Arms {
    fn add(
        &mut self,
        ident: &Ident,
        variant: &Variant,
        name: &str,
        handler: &Path,
        rules: &Rules,
    ) -> Result<()> {
        let (encode, decode) = fields::expand(ident, variant, handler, rules)?;
        let variant = &variant.ident;
        self.name.push(quote!(Self::#variant { .. } => #name,));
        self.encode.push(encode);
        self.decode.push(quote!(#name => #decode));
        Ok(())
    }

    fn into_impl(self, ident: &Ident, names: &[String], handler: &Path) -> TokenStream {
        let Self { name, encode, decode } = self;
        let private = quote!(#handler::__private);
        quote! {
            #[automatically_derived]
            impl #handler::Payload for #ident {
                const NAMES: &'static [&'static str] = &[#(#names),*];

                fn name(&self) -> &'static str {
                    match self { #(#name)* }
                }

                fn to_bytes(&self) -> ::core::result::Result<#private::Bytes, #private::BoxError> {
                    match self { #(#encode)* }
                }

                fn from_bytes(
                    __name: &str,
                    __bytes: &#private::Bytes,
                ) -> ::core::result::Result<Self, #private::BoxError> {
                    match __name {
                        #(#decode)*
                        _ => ::core::result::Result::Err(#private::unknown_type(
                            __name,
                            <Self as #handler::Payload>::NAMES,
                        )),
                    }
                }
            }
        }
    }
}
