import { spawnSync } from 'node:child_process'
import { createImageLauncher } from '../launcher/launchers.ts'
import { type ImageName, images } from '../measure/images.ts'
import { listSources, type Source } from '../measure/listSources.ts'
import { MeasureError } from '../measure/MeasureError.ts'
import { readInputs } from './readInputs.ts'

export type ImageParameters = {
  /** The checkout with installed dependencies. */
  root: string
  name: ImageName
  /** The folder with Node and the Debian packages. */
  inputs: string
}

/** Commands for Node that build the served folders of images. */
const builds: { [Name in ImageName]?: readonly string[] } = {
  coordinator: ['-C', 'source', 'docs/site/main.ts'],
  web: ['node_modules/vite/bin/vite.js', 'build', 'apps/web'],
}

/** Lists all files of an image. Builds the documentation or the web app first, because an earlier build could be of other sources. */
export async function listImage({ root, name, inputs }: ImageParameters): Promise<Source[]> {
  const runtime = await readInputs(root, inputs)
  const build = builds[name]
  if (build !== undefined) {
    // Settings in the environment, such as NODE_ENV, would change what is built.
    const env = { PATH: process.env.PATH }
    const { status, stdout, stderr } = spawnSync(process.execPath, build, { cwd: root, env, encoding: 'utf8' })
    if (status !== 0) throw new MeasureError([`failed to build ${images[name].folders}: ${stderr || stdout}`])
  }
  return listSources({ root, image: images[name], arch: 'x64', runtime, launcher: createImageLauncher(name) })
}
