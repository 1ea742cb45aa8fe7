//! Tests of the module `jobs`.

use super::*;
