import { hash } from 'node:crypto'
import type { ReleaseRecord } from '@countersign/verify'
import { createImage } from '../../deploy/image/createImage.ts'
import { imageNames } from '../../deploy/measure/images.ts'
import { createBundle } from '../bundle/createBundle.ts'

/** Creates the images and the one-file verifiers of a checkout, and returns their hashes. */
export async function createParts(
  root: string,
  { inputs }: { inputs: string },
): Promise<Pick<ReleaseRecord, 'images' | 'verifiers'>> {
  const images: ReleaseRecord['images'][number][] = []
  // One after the other, because each is in memory as a whole.
  for (const name of imageNames) {
    const { digest, filesHash } = await createImage({ root, name, inputs })
    images.push({ name, digest, files: filesHash })
  }
  const files = await createBundle(root)
  const verifiers = files.map(({ name, bytes }) => ({ name, bytes: bytes.length, sha256: hash('sha256', bytes) }))
  return { images, verifiers }
}
