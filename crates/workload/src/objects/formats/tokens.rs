//! `mooncake` and `qwen-bailian`: requests to language models, a JSON object a line, with `timestamp`, `input_length`
//! (in tokens) and `hash_ids`, a number for each block of the prompt; equal prefixes have equal numbers.
//!
//! Mooncake's traces (kvcache-ai/Mooncake, FAST25-release) have blocks of 512 tokens and times in ms; Qwen-Bailian's
//! (alibaba-edu/qwen-bailian-usagetraces-anon) have blocks of 16 tokens, times in s, and a `chat_id`. A request gets
//! each block of the prompt; a miss computes and inserts the block. The last block has the rest of the tokens.
//!
//! Assumed: key and value of a token take `token` bytes. Ignored: that a block is useless without all blocks
//! before it, and output, which a later prompt contains.

use super::ObjectFormat;
use crate::objects::{ObjectRequest, Operation};
use crate::trace::fields::{Fault, Parse};
use serde::Deserialize;

#[derive(Default)]
pub struct Tokens<const BLOCK: u64>;

#[derive(Deserialize)]
struct Line {
    timestamp: f64,
    input_length: u64,
    hash_ids: Vec<u64>,
    chat_id: Option<serde_json::Number>,
}

impl<const BLOCK: u64> ObjectFormat for Tokens<BLOCK> {
    const NAME: &'static str = if BLOCK == 512 { "mooncake" } else { "qwen-bailian" };
    const ABOUT: &'static str = if BLOCK == 512 {
        "JSON lines of Mooncake: hash_ids of blocks of 512 tokens"
    } else {
        "JSON lines of Qwen-Bailian: chat_id, hash_ids of blocks of 16 tokens"
    };
    const TIME_GRAIN: u64 = 1_000_000;
    const HAS_TOKENS: bool = true;

    fn parse(&mut self, line: &[u8], token_bytes: u64, each: &mut dyn FnMut(ObjectRequest)) -> Parse<()> {
        let line: Line = serde_json::from_slice(line).map_err(|error| {
            let what = error.to_string();
            Fault::new(format!("no request: {}", what.split(" at line").next().unwrap_or_default()))
        })?;
        let nanos = if BLOCK == 512 { 1e6 } else { 1e9 };
        if line.chat_id.is_some() != (BLOCK == 16) {
            return Err(Fault::new("a request of Qwen-Bailian has a chat_id, and one of Mooncake has none"));
        }
        if !(0.0..1e9).contains(&line.timestamp) || line.input_length > 1 << 32 {
            return Err(Fault::new("timestamp or input_length: expected numbers from 0 to a billion"));
        }
        for (block, &key) in (0..).zip(&line.hash_ids) {
            let rest = line.input_length.saturating_sub(block * BLOCK);
            let tokens = if rest == 0 { BLOCK } else { rest.min(BLOCK) };
            let arrival = (line.timestamp * nanos) as u64;
            each(ObjectRequest { arrival, key, bytes: tokens * token_bytes, operation: Operation::Get, class: 0 });
        }
        Ok(())
    }
}
