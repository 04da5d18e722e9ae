//! Bytes and names of every kind: what goes in comes out.

use bytes::Bytes;
use poolwright_core::name::NAME_BYTES_MAX;
use poolwright_core::task::PAYLOAD_BYTES_MAX;
use poolwright_core::{Settlement, State};

use crate::Outcome;
use crate::builders::{QUEUE, key, queue, secs, task};
use crate::observe::{assert_same, fresh};
use crate::stage::{Stage, held};

/// Payloads that something between here and the disk might spoil.
fn odd_bytes() -> Vec<Bytes> {
    vec![
        Bytes::new(),
        Bytes::from_static(b"\0"),
        Bytes::from_static(b"a\0b\0"),
        Bytes::from_static(b"\xff\xfe\xc3\x28 no UTF-8"),
        Bytes::from_static("日本語 \u{1f980} e\u{301}".as_bytes()),
        Bytes::from_static(b"'; DROP TABLE tasks; --\r\n\x1a"),
        Bytes::from_static(b"null"),
        Bytes::from_static(b" {} "),
        (0..=255).collect(),
        // Bytes that no compression and no text escape makes shorter.
        (0..PAYLOAD_BYTES_MAX).map(|n| (n.wrapping_mul(2_654_435_761) >> 7).to_le_bytes()[0]).collect(),
    ]
}

pub(crate) async fn any_bytes_come_out_as_they_went_in(s: Stage<'_>) -> Outcome {
    for (at, bytes) in odd_bytes().into_iter().enumerate() {
        let id = format!("t{at}");
        s.enqueue(task(&id).payload(bytes.clone())).await?;
        assert_eq!(s.the(&id).await?.payload, bytes, "{id}: looked at");
        let taken = s.take().await?;
        assert_eq!(taken.payload, bytes, "{id}: claimed");
        s.broker().store_result(held(&taken), bytes.clone()).await?;
        assert_eq!(s.the(&id).await?.result.as_ref(), Some(&bytes), "{id}: a stored result");
        let kept = Settlement::Complete { retain_for: secs(60), result: Some(bytes.clone()) };
        s.settle(&taken, kept).await?;
        assert_eq!(s.page(State::Completed, 1).await?.tasks.len(), 1);
        assert_eq!(s.the(&id).await?.result, Some(bytes), "{id}: a returned result");
        s.broker().delete(key(QUEUE, &id)).await?;
    }
    Ok(())
}

pub(crate) async fn an_empty_result_is_not_none(s: Stage<'_>) -> Outcome {
    let taken = s.running(task("a")).await?;
    assert_eq!(taken.result, None);
    s.broker().store_result(held(&taken), Bytes::new()).await?;
    assert_eq!(s.the("a").await?.result, Some(Bytes::new()));
    Ok(())
}

pub(crate) async fn a_replaced_payload_may_be_of_any_kind(s: Stage<'_>) -> Outcome {
    s.enqueue(task("a").payload("old")).await?;
    for bytes in odd_bytes() {
        s.broker().update_payload(key(QUEUE, "a"), bytes.clone()).await?;
        assert_eq!(s.the("a").await?.payload, bytes);
    }
    Ok(())
}

/// Names that a key, a pattern or a file name might trip over, one of them as long as a name can be.
fn odd_names() -> Vec<String> {
    let longest = "n".repeat(NAME_BYTES_MAX);
    let longest_wide = "é".repeat(NAME_BYTES_MAX / 2);
    let names = [
        "a/b",
        "a:b:c",
        "{q}",
        "*",
        "a%b_c",
        "..",
        "with blanks inside",
        "'quoted' \"twice\"",
        "日本語",
        "\u{1f980}",
        "e\u{301}",
        "é",
        "UPPER",
        "upper",
        "0",
        "00",
        "-1",
        "1e3",
        longest.as_str(),
        longest_wide.as_str(),
    ];
    names.map(str::to_owned).to_vec()
}

pub(crate) async fn any_id_is_an_id(s: Stage<'_>) -> Outcome {
    for name in odd_names() {
        s.enqueue(task(&name).payload(name.clone())).await?;
    }
    for name in odd_names() {
        assert_eq!(s.the(&name).await?.payload, name.as_bytes(), "{name}");
        let taken = s.take().await?;
        assert_eq!(taken.key.id.as_str(), name);
        s.settle(&taken, crate::builders::complete()).await?;
    }
    assert_eq!(s.stats().await?.size(), 0);
    Ok(())
}

pub(crate) async fn any_name_is_a_queue_a_type_a_subject_and_a_lock(s: Stage<'_>) -> Outcome {
    for name in odd_names() {
        let given = task("a")
            .queue(&name)
            .task_type(&name)
            .subject(&name, &name)
            .scope(&name, &name)
            .tenant(&name)
            .header(&name, &name)
            .unique(&name, 60)
            .build();
        s.enqueue(given.clone()).await?;
        let taken = s.take_from(&name).await?;
        s.settle(&taken, Settlement::Release).await?;
        let seen = s.broker().get(key(&name, "a")).await?.expect("it was enqueued");
        let expected = poolwright_core::TaskRecord { token: seen.token, ..fresh(&given, s.now()) };
        assert_same(&seen, &expected);
    }
    let mut names: Vec<_> = odd_names().iter().map(|name| queue(name)).collect();
    names.sort_unstable();
    assert_eq!(s.broker().queues().await?, names, "in order of their bytes");
    Ok(())
}

pub(crate) async fn headers_of_any_text_are_kept(s: Stage<'_>) -> Outcome {
    let long = "v".repeat(100_000);
    let mut given = task("a");
    for (name, value) in [("", ""), ("a", "\0"), ("é", "\u{1f980}\r\n"), ("=", ";,="), ("long", &long)] {
        given = given.header(name, value);
    }
    let given = given.build();
    s.enqueue(given.clone()).await?;
    assert_same(&s.the("a").await?, &fresh(&given, s.now()));
    Ok(())
}
