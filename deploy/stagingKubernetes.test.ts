import { parseEnv } from 'node:util'
import { describe, expect, test } from 'vitest'
import { parse, parseAllDocuments } from 'yaml'
import { checkKubernetes, type KubernetesDocument, toContainers } from './rules/checkKubernetes.ts'
import { createFiles } from './staging/createFiles.ts'
import { applyPatches } from './test/applyPatches.ts'
import { kubernetesContext, kustomization as kustomizationOfBase, read } from './test/manifests.ts'
import { readContainerConfig } from './test/readContainerConfig.ts'

const files = createFiles({ folder: '/run/staging', url: 'http://localhost:8500', user: '1000:1000' })
const password = files['staging-password']?.trim() ?? ''

describe('the Kubernetes overlay of a staging', () => {
  const folder = 'deploy/kubernetes-staging'
  const kustomization = parse(read(`${folder}/kustomization.yaml`)) as {
    resources: string[]
    images: { name: string; newName?: string; newTag: string }[]
    patches: { path?: string; patch?: string }[]
  }
  const documentsOf = (text: string) => parseAllDocuments(text).map((one) => one.toJS() as KubernetesDocument)
  const patches = kustomization.patches.flatMap(({ path, patch }) => documentsOf(patch ?? read(`${folder}/${path}`)))
  const own = ['world.yaml', 'network-policies.yaml'].flatMap((name) => documentsOf(read(`${folder}/${name}`)))
  const base = kustomizationOfBase.resources.flatMap((name) => documentsOf(read(`deploy/kubernetes/${name}`)))
  const merged = applyPatches([...base, ...own], patches)
  const toImage = (name: string) => {
    const image = kustomization.images.find((one) => one.name === name)
    return image === undefined ? name : `${image.newName ?? name}:${image.newTag}`
  }
  const containers = toContainers(merged, toImage)
  const find = (where: string) => {
    const found = containers.find((one) => one.where === where)
    if (found === undefined) throw new Error(`there is no ${where}`)
    return found
  }
  const nameOf = ({ kind, metadata }: KubernetesDocument) => `${kind} ${metadata.namespace}/${metadata.name}`

  test('changes what the base has, and nothing else', () => {
    const there = base.map(nameOf)
    expect(patches.map(nameOf).filter((name) => !there.includes(name))).toEqual([])
    expect(kustomization.resources).toEqual(['../kubernetes', 'world.yaml', 'network-policies.yaml'])
  })

  test('has images with simulated silicon alone, and asks for no confidential guest', () => {
    for (const { name, newName } of kustomization.images) {
      expect(newName).toBe(name === 'countersign-world' ? undefined : `${name}-staging`)
    }
    const guests = base.filter(({ spec }) => spec?.template?.spec.runtimeClassName !== undefined).map(nameOf)
    const released = patches.filter(({ spec }) => spec?.template?.spec.runtimeClassName === null).map(nameOf)
    expect(released.toSorted()).toEqual(guests.toSorted())
  })

  test('what is applied keeps our own rules', () => {
    const givenByOperator = [...kubernetesContext.givenByOperator, 'staging']
    const faults = checkKubernetes(merged, { ...kubernetesContext, givenByOperator, toImage })
    // The world is no image of ours to the launcher, and says for itself what it is.
    expect(faults.filter((fault) => !fault.includes('NODE_ENV decides which code runs'))).toEqual([])
  })

  test('what is applied is valid, and reaches for nothing of a confidential guest', () => {
    expect(JSON.stringify(merged)).not.toMatch(/configfs|hostPath|kata-|\$patch|enclave-policies|coordinator-policies/)
  })

  test.each([
    ['Deployment coordinator/coordinator', { mode: 'staging', isMock: true, reportSource: 'mock' }],
    ['Deployment coordinator/doctor', { mode: 'staging', isMock: true, reportSource: 'mock' }],
    ['StatefulSet worker/worker', { config: { chain: { chainId: 31337 } } }],
    ['StatefulSet worker/doctor', { config: { chain: { chainId: 31337 } } }],
    ['StatefulSet enclave/enclave', { chainIds: expect.arrayContaining([31337]) }],
  ])('%s starts with what it is given', (where, expected) => {
    const container = find(where)
    const isOfWorker = container.args.includes('--worker')
    // A doctor reads what its program reads.
    const looked = where.endsWith('/doctor') ? { ...container, args: isOfWorker ? ['worker'] : [] } : container
    expect(readContainerConfig(looked, { 'staging-password': `${password}\n` })).toMatchObject(expected)
  })

  test.each([
    ['Deployment', 'coordinator'],
    ['StatefulSet', 'worker'],
  ])('the doctor of %s %s looks at what it starts with, as the same user', (kind, name) => {
    const [doctor, own] = [find(`${kind} ${name}/doctor`), find(`${kind} ${name}/${name}`)]
    expect([doctor.env, doctor.mounts]).toEqual([own.env, own.mounts])
    const pod = merged.find((one) => nameOf(one) === `${kind} countersign/${name}`)?.spec?.template?.spec
    const users = [...(pod?.initContainers ?? []), ...(pod?.containers ?? [])]
      .filter((one) => one.name === 'doctor' || one.name === name)
      .map(({ securityContext }) => [securityContext?.runAsUser, securityContext?.runAsNonRoot])
    expect(users).toEqual([
      [65_532, true],
      [65_532, true],
    ])
  })

  test('the front asks for the password, and the world is that of the prepared files', () => {
    const prepared = parseEnv(files['.env'] ?? '')
    expect(find('Deployment web/web').env).toMatchObject({
      STAGING_PASSWORD_FILE: '/run/secrets/staging/staging-password',
    })
    expect(find('Deployment coordinator/coordinator').env.ENTROPY_PUBLIC_KEY).toBe(prepared.ENTROPY_PUBLIC_KEY)
    expect(find('StatefulSet worker/worker').env.ATTESTATIONS_ADDRESS).toBe(prepared.ATTESTATIONS_ADDRESS)
  })
})

describe('a patch', () => {
  const [document] = parseAllDocuments(
    '{ kind: A, metadata: { name: x }, spec: { a: 1, containers: [{ name: y, env: [{ name: E, value: 1 }], args: [1, 2] }] } }',
  ).map((one) => one.toJS() as KubernetesDocument)
  const apply = (spec: object) =>
    applyPatches(
      [document as KubernetesDocument],
      [{ ...(document as KubernetesDocument), spec } as KubernetesDocument],
    )

  test('changes items by their names, replaces other lists, and removes what it says', () => {
    const env = [
      { name: 'E', $patch: 'delete' },
      { name: 'F', value: 2 },
    ]
    expect(apply({ a: null, containers: [{ name: 'y', env, args: [3] }] })).toEqual([
      {
        kind: 'A',
        metadata: { name: 'x' },
        spec: { containers: [{ name: 'y', env: [{ name: 'F', value: 2 }], args: [3] }] },
      },
    ])
  })

  test('that removes what is not there is refused', () => {
    expect(() => apply({ containers: [{ name: 'z', $patch: 'delete' }] })).toThrow('there is no z in containers')
  })
})
