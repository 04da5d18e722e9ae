//! One variant of an enum of tasks: the private structs by which its fields become JSON and come back.
//!
//! `serde` derives on structs that this derive makes, not on the user's enum: see [`crate::derive_tasks`] for why.

use proc_macro2::{Group, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote};
use syn::punctuated::Punctuated;
use syn::{Attribute, Error, Field, Fields, Ident, Meta, Path, Result, Token, Variant};

/// What the enum's own `#[serde(…)]` says about the fields of every variant.
#[derive(Default)]
pub(crate) struct Rules {
    rename_all: Option<TokenStream>,
    deny_unknown: bool,
}

impl Rules {
    /// Reads the attributes of the enum.
    pub(crate) fn of_enum(attributes: &[Attribute]) -> Result<Self> {
        let mut rules = Self::default();
        for meta in serde_metas(attributes)? {
            match word(&meta).as_str() {
                "rename_all_fields" => rules.rename_all = Some(renamed(&meta)),
                "deny_unknown_fields" => rules.deny_unknown = true,
                // Tags and the names of variants are no part of a payload.
                _ => {}
            }
        }
        Ok(rules)
    }

    /// The attributes of a variant's private struct.
    fn of_variant(&self, variant: &Variant) -> Result<Vec<TokenStream>> {
        let mut rename_all = self.rename_all.clone();
        for meta in serde_metas(&variant.attrs)? {
            match word(&meta).as_str() {
                "rename_all" => rename_all = Some(meta.to_token_stream()),
                "with" | "serialize_with" | "deserialize_with" => {
                    let message = "`Tasks` reads the fields of a variant; write this on a field, or wrap a type \
                                   that serializes so";
                    return Err(Error::new_spanned(meta, message));
                }
                _ => {}
            }
        }
        let deny = self.deny_unknown.then(|| quote!(deny_unknown_fields));
        Ok(rename_all.into_iter().chain(deny).collect())
    }
}

fn serde_metas(attributes: &[Attribute]) -> Result<Vec<Meta>> {
    let mut metas = Vec::new();
    for attribute in attributes.iter().filter(|a| a.path().is_ident("serde")) {
        metas.extend(attribute.parse_args_with(Punctuated::<Meta, Token![,]>::parse_terminated)?);
    }
    Ok(metas)
}

fn word(meta: &Meta) -> String {
    meta.path().get_ident().map(Ident::to_string).unwrap_or_default()
}

/// `rename_all_fields = …` of an enum, as a struct says it.
fn renamed(meta: &Meta) -> TokenStream {
    match meta {
        Meta::Path(_) => quote!(rename_all),
        Meta::List(list) => {
            let tokens = &list.tokens;
            quote!(rename_all(#tokens))
        }
        Meta::NameValue(pair) => {
            let value = &pair.value;
            quote!(rename_all = #value)
        }
    }
}

/// The arm of `to_bytes`, with its pattern, and the body of the arm of `from_bytes`.
pub(crate) fn expand(
    ident: &Ident,
    variant: &Variant,
    handler: &Path,
    rules: &Rules,
) -> Result<(TokenStream, TokenStream)> {
    let shape = Shape { ident, variant, handler, rules: rules.of_variant(variant)? };
    match &variant.fields {
        Fields::Unnamed(fields) if fields.unnamed.len() > 1 => {
            let name = &variant.ident;
            let message = format!(
                "`{name}` has several fields without names, so its JSON would have none either: write \
                 `{name} {{ a: …, b: … }}`, or wrap a struct"
            );
            Err(Error::new_spanned(&variant.fields, message))
        }
        fields if fields.is_empty() => Ok(shape.nothing()),
        fields => Ok(shape.something(fields)),
    }
}

struct Shape<'a> {
    ident: &'a Ident,
    variant: &'a Variant,
    handler: &'a Path,
    rules: Vec<TokenStream>,
}

impl Shape<'_> {
    /// A variant without fields.
    fn nothing(&self) -> (TokenStream, TokenStream) {
        let (handler, name) = (self.handler, &self.variant.ident);
        let shown = self.shown();
        let encode =
            quote!(Self::#name { .. } => ::core::result::Result::Ok(#handler::__private::no_fields()),);
        let decode = quote! {{
            #handler::__private::expect_no_fields(__bytes, #shown)?;
            ::core::result::Result::Ok(Self::#name {})
        }};
        (encode, decode)
    }

    /// A variant with named fields, or one that wraps a value.
    fn something(&self, fields: &Fields) -> (TokenStream, TokenStream) {
        let (handler, name) = (self.handler, &self.variant.ident);
        let private = quote!(#handler::__private);
        let serde = format!("{}::__private::serde", handler.to_token_stream());
        let mut rules = self.rules.clone();
        if let Fields::Unnamed(_) = fields {
            rules = vec![quote!(transparent)];
        }
        let members: Vec<_> = fields.members().collect();
        let bindings: Vec<_> = (0..members.len()).map(|at| format_ident!("__field{at}")).collect();
        let borrowed = self.body(fields, |ty| quote!(&'__task #ty));
        let owned = self.body(fields, |ty| ty);
        // A struct of named fields says in errors whose fields it wants; a wrapper leaves that to what it wraps.
        let expecting = matches!(fields, Fields::Named(_)).then(|| {
            let text = format!("the fields of `{}`", self.shown());
            quote!(expecting = #text,)
        });
        let encode = quote! {
            Self::#name { #(#members: #bindings),* } => {
                #[derive(#private::serde::Serialize)]
                #[serde(crate = #serde, #(#rules),*)]
                struct __Fields<'__task> #borrowed
                #private::to_json(&__Fields { #(#members: #bindings),* })
            }
        };
        let decode = quote! {{
            #[derive(#private::serde::Deserialize)]
            #[serde(crate = #serde, #expecting #(#rules),*)]
            struct __Fields #owned
            let __fields: __Fields = #private::from_json(__bytes)?;
            ::core::result::Result::Ok(Self::#name { #(#members: __fields.#members),* })
        }};
        (encode, decode)
    }

    /// The body of a private struct, with its semicolon if it needs one.
    fn body(&self, fields: &Fields, make: impl Fn(TokenStream) -> TokenStream) -> TokenStream {
        let one = |field: &Field| {
            let serde = field.attrs.iter().filter(|a| a.path().is_ident("serde"));
            let ty = make(named_self(field.ty.to_token_stream(), self.ident));
            let name = field.ident.as_ref().map(|ident| quote!(#ident:));
            quote!(#[allow(dead_code, reason = "a skipped field is never read")] #(#serde)* #name #ty)
        };
        let list = fields.iter().map(one);
        match fields {
            Fields::Named(_) => quote!({ #(#list),* }),
            _ => quote!((#(#list),*);),
        }
    }

    fn shown(&self) -> String {
        format!("{}::{}", self.ident, self.variant.ident)
    }
}

/// Writes the enum's name for `Self`, which would mean the private struct inside of it.
fn named_self(tokens: TokenStream, ident: &Ident) -> TokenStream {
    let rename = |token| match token {
        TokenTree::Ident(word) if word == "Self" => {
            let mut name = ident.clone();
            name.set_span(word.span());
            TokenTree::Ident(name)
        }
        TokenTree::Group(group) => {
            let mut inner = Group::new(group.delimiter(), named_self(group.stream(), ident));
            inner.set_span(group.span());
            TokenTree::Group(inner)
        }
        other => other,
    };
    tokens.into_iter().map(rename).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn self_in_a_fields_type_means_the_enum() {
        let ident = format_ident!("Job");
        let named = named_self(quote!(Vec<(Self, Option<Box<Self>>)>), &ident);
        assert_eq!(named.to_string(), quote!(Vec<(Job, Option<Box<Job>>)>).to_string());
    }
}
