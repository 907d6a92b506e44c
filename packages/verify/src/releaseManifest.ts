import { emptyManifest, type Manifest } from './parseManifest.ts'

/**
 * What this version of the verifier knows by itself. There has been no release yet, so it knows nothing: every anchor comes
 * from the reader. A release fills it with the measurements of its reproducible builds, in the commit that is tagged.
 */
export const releaseManifest: Manifest = emptyManifest
