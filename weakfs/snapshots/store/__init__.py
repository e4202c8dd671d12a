"""The content-addressed store: pack files, manifests, and the catalogue of snapshots."""
