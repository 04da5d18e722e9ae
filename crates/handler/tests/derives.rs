//! What the derives make of a payload.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::BTreeMap;

use bytes::Bytes;
use poolwright_derive::{TaskType, Tasks};
use poolwright_handler::{Payload, TaskType as _};
use serde::{Deserialize, Serialize};

#[derive(Debug, PartialEq, Serialize, Deserialize)]
enum Operation {
    Resize { width: u32 },
    Compress(u8),
}

mod hex {
    pub(super) fn serialize<S: serde::Serializer>(value: &u32, out: S) -> Result<S::Ok, S::Error> {
        out.collect_str(&format_args!("{value:x}"))
    }

    pub(super) fn deserialize<'de, D: serde::Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
        let text: String = serde::Deserialize::deserialize(from)?;
        u32::from_str_radix(&text, 16).map_err(serde::de::Error::custom)
    }
}

/// The enum has a `serde` shape of its own, as an application may want for its logs; payloads do not follow it.
#[derive(Debug, PartialEq, Serialize, Deserialize, Tasks)]
#[serde(tag = "type", content = "payload", rename_all_fields = "camelCase")]
#[task(prefix = "app:", crate = "poolwright_handler")]
enum Job {
    SendEmail {
        to: String,
        reply_to: Option<String>,
    },
    ProcessImage {
        media_id: String,
        operations: Vec<Operation>,
    },
    #[task("media:webp")]
    ConvertWebP(Wrapped),
    #[serde(rename_all = "SCREAMING_SNAKE_CASE", rename = "other")]
    Tuned {
        #[serde(rename = "n", with = "hex")]
        number: u32,
        #[serde(default = "seven")]
        a_default: u32,
        #[serde(skip_serializing_if = "Option::is_none", default)]
        nothing: Option<u8>,
        #[serde(skip)]
        skipped: u16,
        #[serde(flatten)]
        rest: BTreeMap<String, u8>,
    },
    Nested {
        inner: Vec<Self>,
        r#type: u8,
    },
    GenerateSitemap,
    Bare {},
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Wrapped {
    media_id: String,
}

fn seven() -> u32 {
    7
}

fn json(job: &Job) -> String {
    String::from_utf8(job.to_bytes().unwrap().to_vec()).unwrap()
}

fn read(name: &str, text: &str) -> Result<Job, String> {
    Job::from_bytes(name, &Bytes::copy_from_slice(text.as_bytes())).map_err(|error| error.to_string())
}

/// Writes the value, reads it again, and gives what was written.
#[track_caller]
fn there_and_back(job: &Job) -> String {
    let text = json(job);
    assert_eq!(read(job.name(), &text).as_ref(), Ok(job));
    text
}

#[test]
fn each_variant_has_a_name_of_its_own() {
    assert_eq!(
        Job::NAMES,
        [
            "app:send_email",
            "app:process_image",
            "media:webp",
            "app:tuned",
            "app:nested",
            "app:generate_sitemap",
            "app:bare"
        ]
    );
    assert_eq!(Job::ConvertWebP(Wrapped { media_id: "m".into() }).name(), "media:webp");
}

#[test]
fn a_payload_is_the_json_of_the_fields_alone() {
    let email = Job::SendEmail { to: "ada".into(), reply_to: None };
    assert_eq!(there_and_back(&email), r#"{"to":"ada","replyTo":null}"#);
    let operations = vec![Operation::Resize { width: 3 }, Operation::Compress(9)];
    let image = Job::ProcessImage { media_id: "m".into(), operations };
    assert_eq!(
        there_and_back(&image),
        r#"{"mediaId":"m","operations":[{"Resize":{"width":3}},{"Compress":9}]}"#
    );
}

#[test]
fn a_wrapping_variant_is_what_it_wraps() {
    let webp = Job::ConvertWebP(Wrapped { media_id: "m".into() });
    assert_eq!(there_and_back(&webp), r#"{"media_id":"m"}"#);
    assert_eq!(read("media:webp", "{}"), Err("missing field `media_id` at line 1 column 2".into()));
}

#[test]
fn serde_attributes_of_fields_and_variants_count() {
    let rest = BTreeMap::from([("extra".to_owned(), 1)]);
    let tuned = Job::Tuned { number: 255, a_default: 8, nothing: None, skipped: 0, rest };
    assert_eq!(there_and_back(&tuned), r#"{"n":"ff","A_DEFAULT":8,"extra":1}"#);
    let least = Job::Tuned { number: 1, a_default: 7, nothing: None, skipped: 0, rest: BTreeMap::new() };
    assert_eq!(read("app:tuned", r#"{"n":"1"}"#), Ok(least));
}

#[test]
fn self_and_raw_names_work_in_fields() {
    let nested = Job::Nested { inner: vec![Job::GenerateSitemap], r#type: 2 };
    assert_eq!(there_and_back(&nested), r#"{"inner":[{"type":"GenerateSitemap"}],"type":2}"#);
}

#[test]
fn a_variant_without_fields_reads_an_object_null_and_nothing() {
    assert_eq!(there_and_back(&Job::GenerateSitemap), "{}");
    assert_eq!(there_and_back(&Job::Bare {}), "{}");
    for text in ["", "null", " {} ", r#"{"lf_traceparent":"x"}"#] {
        assert_eq!(read("app:generate_sitemap", text), Ok(Job::GenerateSitemap), "{text:?}");
    }
    assert_eq!(
        read("app:generate_sitemap", "5"),
        Err("`Job::GenerateSitemap` has no fields: invalid type: integer `5`, expected `{}` at line 1 column 1"
            .into())
    );
    for list in ["[]", "[1]"] {
        let error = read("app:generate_sitemap", list).unwrap_err();
        assert!(error.contains("invalid type: sequence, expected `{}`"), "{list}: {error}");
    }
}

#[test]
fn a_task_of_another_type_is_refused_by_name() {
    let error = read("app:sendemail", "{}").unwrap_err();
    assert!(error.starts_with("expected a task of type `app:send_email`, "), "{error}");
    assert!(error.ends_with("this one is `app:sendemail`"), "{error}");
}

#[test]
fn unknown_fields_are_refused_when_the_enum_says_so() {
    #[derive(Debug, Tasks)]
    #[serde(deny_unknown_fields)]
    #[task(crate = "::poolwright_handler")]
    enum Strict {
        One { a: u8 },
    }
    let Strict::One { a } = Strict::from_bytes("one", &Bytes::from_static(b"{\"a\":1}")).unwrap();
    assert_eq!(a, 1);
    let error = Strict::from_bytes("one", &Bytes::from_static(b"{\"a\":1,\"b\":2}")).unwrap_err();
    assert_eq!(error.to_string(), "unknown field `b`, expected `a` at line 1 column 10");
}

#[test]
fn a_struct_or_an_enum_may_be_one_task_type() {
    #[derive(Serialize, Deserialize, TaskType)]
    #[task("plain", crate = "poolwright_handler")]
    struct Plain;
    #[derive(Serialize, Deserialize, TaskType)]
    #[task(name = "either")]
    #[task(crate = "::poolwright_handler")]
    enum Either {
        Left,
        Right,
    }
    #[derive(Serialize, Deserialize, TaskType)]
    #[task("batch", crate = "poolwright_handler")]
    struct Batch<T>
    where
        T: Serialize + serde::de::DeserializeOwned + Send + 'static,
    {
        #[serde(bound = "")]
        items: Vec<T>,
    }
    assert_eq!((Plain::NAME, Either::NAME, Batch::<u8>::NAME), ("plain", "either", "batch"));
    assert_eq!(Plain.to_bytes().unwrap(), "null");
    assert!(Plain::from_bytes("plain", &Bytes::new()).is_ok());
    assert_eq!([Either::Left, Either::Right].map(|e| e.to_bytes().unwrap()), ["\"Left\"", "\"Right\""]);
    let batch = Batch::<u8>::from_bytes("batch", &Bytes::from_static(b"{\"items\":[1]}")).unwrap();
    assert_eq!(batch.items, [1]);
}
