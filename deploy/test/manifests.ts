import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { parse, parseAllDocuments } from 'yaml'
import {
  type Compose,
  type ComposeContext,
  toContainers as composeContainers,
  interpolate,
} from '../rules/checkCompose.ts'
import {
  type KubernetesContext,
  type KubernetesDocument,
  toContainers as kubernetesContainers,
} from '../rules/checkKubernetes.ts'
import type { Container } from '../rules/containers.ts'

/** All manifests of this folder, read once, and the containers that they start. */

const root = join(import.meta.dirname, '../..')
export const read = (path: string) => readFileSync(join(root, path), 'utf8')

/** .dockerignore is a list of what is sent, and of folders within that are not. */
export function isSent(path: string): boolean {
  const lines = read('.dockerignore').split('\n')
  const isAllowed = lines.some((line) => line.startsWith('!') && `${path}/`.startsWith(`${line.slice(1)}/`))
  return isAllowed && !/(^|\/)(node_modules|dist|\.env)(\/|$)/.test(path) && existsSync(join(root, path))
}

export const startExample = parseEnv(read('deploy/compose/start.env.example'))
export const envExample = { ...parseEnv(read('deploy/compose.env.example')), ...startExample }
export const composeTemplate: unknown = parse(read('deploy/compose.yaml'), { merge: true })
export const compose = interpolate(composeTemplate, envExample) as Compose
export const composeContext: ComposeContext = {
  isThere: (path) => existsSync(join(root, 'deploy', path)),
}

export const dstackText = read('deploy/dstack/docker-compose.yaml')
export const dstack = parse(dstackText) as Compose

const yamlIn = (folder: string) =>
  readdirSync(join(root, folder)).filter((name) => name.endsWith('.yaml') && name !== 'kustomization.yaml')
export const kubernetesFiles = yamlIn('deploy/kubernetes')
export const ceremonyFiles = yamlIn('deploy/kubernetes/ceremony')
type Kustomization = { resources: string[]; images: { name: string; newTag: string }[] }
export const kustomization = parse(read('deploy/kubernetes/kustomization.yaml')) as Kustomization
export const ceremony = parse(read('deploy/kubernetes/ceremony/kustomization.yaml')) as Kustomization
export const documents = [...kubernetesFiles, ...ceremonyFiles.map((name) => `ceremony/${name}`)].flatMap((name) =>
  parseAllDocuments(read(`deploy/kubernetes/${name}`)).map((document) => {
    if (document.errors.length > 0) throw new Error(`${name}: ${document.errors.join()}`)
    return document.toJS() as KubernetesDocument
  }),
)
export const kubernetesContext: KubernetesContext = {
  toImage(name) {
    const tag = kustomization.images.find((image) => image.name === name)?.newTag
    return tag === undefined ? name : `${name}:${tag}`
  },
  isPath(image, path) {
    const sources: Record<string, string> = {
      'countersign-enclave': read('services/enclave/src/app.ts') + read('services/enclave/src/serveCalls.ts'),
      'countersign-coordinator': read('services/coordinator/src/http/routes.ts'),
      'countersign-web': read('deploy/web/server.ts'),
    }
    // A coordinator's route has its method before the path.
    return [`'${path}'`, `'GET ${path}'`].some((text) => sources[image]?.includes(text))
  },
  givenByOperator: ['coordinator', 'worker', 'postgres', 'coordinator-policies', 'enclave-policies', 'root-backup'],
}

export const containers: Record<string, Container[]> = {
  compose: composeContainers(compose),
  kubernetes: kubernetesContainers(documents, kubernetesContext.toImage),
  dstack: composeContainers(dstack),
}
