//! When flash operations happen: the event engine with its queues and resources.

pub mod settings;
