//! A plug-in of Palimpsest with the layer `ring`. Another layer is another module, and another entry in the list.

mod ring;

palimpsest_layer::plugin!(ring::ENTRY);
