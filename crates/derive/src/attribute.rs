//! Reads `#[task(…)]`.

use proc_macro2::Span;
use syn::ext::IdentExt;
use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Attribute, Error, Ident, LitStr, Path, Result, Token};

use crate::name;

/// Where an attribute stands; that decides what it may say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Above a type that derives `TaskType`.
    Type,
    /// Above an enum that derives `Tasks`.
    Enum,
    /// Above one of its variants.
    Variant,
}

impl Place {
    const fn keys(self) -> &'static [&'static str] {
        match self {
            Self::Type => &["name", "crate"],
            Self::Enum => &["prefix", "crate"],
            Self::Variant => &["name"],
        }
    }

    const fn example(self) -> &'static str {
        match self {
            Self::Type => "`#[task(\"some:name\")]`",
            Self::Enum => "`#[task(prefix = \"some:\")]`",
            Self::Variant => "`#[task(\"some:name\")]` above a variant",
        }
    }
}

/// What all `#[task(…)]` of one place say together.
#[derive(Default)]
pub(crate) struct Task {
    /// The whole name of the task type.
    pub(crate) name: Option<LitStr>,
    /// What stands before the names made from variants.
    pub(crate) prefix: Option<LitStr>,
    krate: Option<Path>,
}

impl Task {
    /// Reads the attributes of one place.
    pub(crate) fn read(attributes: &[Attribute], place: Place) -> Result<Self> {
        let mut task = Self::default();
        for attribute in attributes.iter().filter(|a| a.path().is_ident("task")) {
            if attribute.meta.require_list().is_err() {
                let message = format!("expected {}", place.example());
                return Err(Error::new_spanned(attribute, message));
            }
            for item in attribute.parse_args_with(Punctuated::<Item, Token![,]>::parse_terminated)? {
                task.take(item, place)?;
            }
        }
        Ok(task)
    }

    /// The path to the runtime's `handler` module.
    pub(crate) fn handler(&self) -> Path {
        self.krate.clone().unwrap_or_else(|| syn::parse_quote!(::poolwright::handler))
    }

    fn take(&mut self, item: Item, place: Place) -> Result<()> {
        if !place.keys().contains(&item.key.as_str()) {
            return Err(unknown(&item, place));
        }
        let taken = match item.key.as_str() {
            "crate" => self.krate.replace(item.value.parse()?).is_some(),
            "prefix" => {
                name::check_characters(&item.value)?;
                self.prefix.replace(item.value).is_some()
            }
            _ => {
                name::check(&item.value.value(), item.value.span())?;
                self.name.replace(item.value).is_some()
            }
        };
        if taken {
            return Err(Error::new(item.span, format!("`{}` is given twice", item.key)));
        }
        Ok(())
    }
}

fn unknown(item: &Item, place: Place) -> Error {
    let message = match (place, item.key.as_str()) {
        (Place::Enum, "name") => {
            "an enum has a name for each variant: write `#[task(\"some:name\")]` above a variant, \
             or `#[task(prefix = \"some:\")]` here"
                .to_owned()
        }
        (_, key) => {
            let known: Vec<String> = place.keys().iter().map(|key| format!("`{key}`")).collect();
            format!("unknown key `{key}`, expected {}", known.join(" or "))
        }
    };
    Error::new(item.span, message)
}

/// `"text"`, which is short for `name = "text"`, or `key = "text"`.
struct Item {
    key: String,
    value: LitStr,
    span: Span,
}

impl Parse for Item {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        if input.peek(LitStr) {
            let value: LitStr = input.parse()?;
            return Ok(Self { key: "name".to_owned(), span: value.span(), value });
        }
        // `crate` is a keyword, which plain parsing of identifiers refuses.
        let other = |span| Error::new(span, "expected a name in quotes, or `key = \"value\"`");
        let key = Ident::parse_any(input).map_err(|error| other(error.span()))?;
        if !input.peek(Token![=]) {
            return Err(other(key.span()));
        }
        input.parse::<Token![=]>()?;
        Ok(Self { span: key.span(), key: key.to_string(), value: input.parse()? })
    }
}
