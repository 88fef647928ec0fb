"""`make release`: images, chart, manifest, SBOMs, Python packages and signatures of one version, into a registry."""
