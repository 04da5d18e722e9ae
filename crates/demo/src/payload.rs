//! The payloads of the pipeline's tasks, with the field names that operators and the file of queues know, and their ids.
//!
//! Invariant: a task's id follows from its payload, and its payload from what the library holds; so work that is asked
//! for twice is there once.

use poolwright::prelude::*;

use crate::id::{BaseId, ChunkId, DocumentId, Generation, Key, SourceId};
use crate::library::Part;

/// The demo has one customer.
pub const TENANT: u64 = 1;

/// Looks through a folder for what is new, changed or gone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TaskType)]
#[task("datasource:sync")]
pub struct DatasourceSync {
    /// [`TENANT`].
    pub tenant_id: u64,
    /// The folder's id; each folder is the one source of its knowledge base.
    pub data_source_id: BaseId,
    /// The knowledge base that it fills.
    pub knowledge_base_id: BaseId,
    /// The absolute path of the folder.
    pub folder: SourceId,
}

impl DatasourceSync {
    /// The task for this folder.
    #[must_use]
    pub fn of(source: &SourceId) -> Self {
        let base = BaseId::of(source);
        Self {
            tenant_id: TENANT,
            data_source_id: base.clone(),
            knowledge_base_id: base,
            folder: source.clone(),
        }
    }

    /// One at a time for each folder.
    #[must_use]
    pub fn id(&self) -> String {
        format!("dssync:{}", self.data_source_id)
    }
}

/// Reads a file with text, cuts it into chunks and indexes them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TaskType)]
#[task("document:process")]
pub struct DocumentProcess {
    /// [`TENANT`].
    pub tenant_id: u64,
    /// The document.
    pub knowledge_id: DocumentId,
    /// Its knowledge base.
    pub knowledge_base_id: BaseId,
    /// Below the folder; for people, the library knows it too.
    pub file_path: String,
    /// The kind, as [`crate::Kind::as_str`] says it.
    pub file_type: String,
    /// Which life of the document.
    pub attempt: Generation,
}

/// Looks at a picture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TaskType)]
#[task("image:multimodal")]
pub struct ImageMultimodal {
    /// [`TENANT`].
    pub tenant_id: u64,
    /// The picture, which is a document of its own.
    pub knowledge_id: DocumentId,
    /// Its knowledge base.
    pub knowledge_base_id: BaseId,
    /// Below the folder; for people, the library knows it too.
    pub image_local_path: String,
    /// Which life of the document.
    pub attempt: Generation,
}

/// Ends the reading of a document and fans out what enriches it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TaskType)]
#[task("knowledge:post_process")]
pub struct PostProcess {
    /// [`TENANT`].
    pub tenant_id: u64,
    /// The document.
    pub knowledge_id: DocumentId,
    /// Its knowledge base.
    pub knowledge_base_id: BaseId,
    /// Which life of the document.
    pub attempt: Generation,
}

/// Summarises a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TaskType)]
#[task("summary:generation")]
pub struct SummaryGeneration {
    /// [`TENANT`].
    pub tenant_id: u64,
    /// The document.
    pub knowledge_id: DocumentId,
    /// Its knowledge base.
    pub knowledge_base_id: BaseId,
    /// Which life of the document.
    pub attempt: Generation,
}

/// Asks what one batch of chunks answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TaskType)]
#[task("question:generation")]
pub struct QuestionGeneration {
    /// [`TENANT`].
    pub tenant_id: u64,
    /// The document.
    pub knowledge_id: DocumentId,
    /// Its knowledge base.
    pub knowledge_base_id: BaseId,
    /// Which batch of [`BATCH_CHUNKS`](crate::stage::question::BATCH_CHUNKS) chunks, from 0.
    pub batch_index: u32,
    /// Questions a chunk at most; absent: 3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question_count: Option<usize>,
    /// Which life of the document.
    pub attempt: Generation,
}

/// Draws the graph of one chunk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TaskType)]
#[task("chunk:extract")]
pub struct ChunkExtract {
    /// [`TENANT`].
    pub tenant_id: u64,
    /// The chunk.
    pub chunk_id: ChunkId,
    /// Its document.
    pub knowledge_id: DocumentId,
    /// Its knowledge base.
    pub knowledge_base_id: BaseId,
    /// Which life of the document.
    pub attempt: Generation,
}

/// Draws the pages of documents that changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TaskType)]
#[task("wiki:ingest")]
pub struct WikiIngest {
    /// [`TENANT`].
    pub tenant_id: u64,
    /// The knowledge base whose documents changed.
    pub knowledge_base_id: BaseId,
}

/// Draws whatever differs, and takes away what nothing stands behind any more. Its id comes from the file of queues.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, TaskType)]
#[task("wiki:finalize")]
pub struct WikiFinalize {
    /// [`TENANT`].
    pub tenant_id: u64,
    /// The knowledge base whose work has ended.
    pub knowledge_base_id: BaseId,
}

impl WikiIngest {
    /// For this knowledge base.
    #[must_use]
    pub const fn of(base: BaseId) -> Self {
        Self { tenant_id: TENANT, knowledge_base_id: base }
    }

    /// One at a time for each knowledge base.
    #[must_use]
    pub fn id(&self) -> String {
        format!("wiki-ingest-{}", self.knowledge_base_id)
    }
}

impl WikiFinalize {
    /// For this knowledge base.
    #[must_use]
    pub const fn of(base: BaseId) -> Self {
        Self { tenant_id: TENANT, knowledge_base_id: base }
    }
}

/// What tasks about one life of a document have in common.
pub(crate) trait OfDocument: TaskType + Sync {
    /// The document and its life.
    fn key(&self) -> Key;
    /// Its knowledge base.
    fn base(&self) -> &BaseId;
    /// Once for each life, and for each part of it.
    fn id(&self) -> String;
}

macro_rules! of_document {
    ($type:ty, $task:ident => $part:expr) => {
        impl OfDocument for $type {
            fn key(&self) -> Key {
                Key { document: self.knowledge_id.clone(), generation: self.attempt }
            }

            fn base(&self) -> &BaseId {
                &self.knowledge_base_id
            }

            fn id(&self) -> String {
                let $task = self;
                format!("{}:{}{}", self.knowledge_id, self.attempt.0, $part)
            }
        }
    };
}

of_document!(DocumentProcess, _task => "");
of_document!(ImageMultimodal, _task => "");
of_document!(PostProcess, _task => "");
of_document!(SummaryGeneration, _task => "");
of_document!(QuestionGeneration, task => format_args!(":{}", task.batch_index));
of_document!(ChunkExtract, task => format_args!(":{}", task.chunk_id));

/// As much of any payload as names the document it is about.
#[derive(Debug, Deserialize)]
pub(crate) struct About {
    knowledge_id: DocumentId,
    attempt: Generation,
    batch_index: Option<u32>,
    chunk_id: Option<ChunkId>,
}

impl About {
    /// What a payload is about; nothing when it is not about a document.
    pub(crate) fn of(payload: &[u8]) -> Option<Self> {
        serde_json::from_slice(payload).ok()
    }

    pub(crate) fn key(&self) -> Key {
        Key { document: self.knowledge_id.clone(), generation: self.attempt }
    }

    /// Which part of the document a task of this type makes; none: it reads the document itself.
    pub(crate) fn part(self, task_type: &str) -> Option<Part> {
        match task_type {
            SummaryGeneration::NAME => Some(Part::Summary),
            QuestionGeneration::NAME => self.batch_index.map(Part::Questions),
            ChunkExtract::NAME => self.chunk_id.map(Part::Graph),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extract() -> ChunkExtract {
        let source = SourceId::from("/yard".to_owned());
        let document = DocumentId::of(&source, "a.md");
        ChunkExtract {
            tenant_id: TENANT,
            chunk_id: ChunkId::of(&document, 0, "text"),
            knowledge_id: document,
            knowledge_base_id: BaseId::of(&source),
            attempt: Generation(7),
        }
    }

    #[test]
    fn a_dead_letter_leads_back_to_its_part() {
        let task = extract();
        let about = About::of(&task.encode().expect("encodes")).expect("about a document");
        assert_eq!(about.key(), task.key());
        assert_eq!(about.part("chunk:extract"), Some(Part::Graph(task.chunk_id)));
        let wiki = WikiFinalize::of(task.knowledge_base_id).encode().expect("encodes");
        assert!(About::of(&wiki).is_none() && About::of(b"\xff").is_none());
    }

    #[test]
    fn ids_differ_by_life_and_part_and_every_queue_can_keep_them() {
        let (one, mut other) = (extract(), extract());
        other.attempt = Generation(8);
        assert_ne!(one.id(), other.id());
        assert!(one.id().starts_with(&format!("{}:7:", one.knowledge_id)));
        poolwright::core::TaskId::new(one.id()).expect("an id");
    }
}
