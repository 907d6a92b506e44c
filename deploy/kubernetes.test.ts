import { spawn } from 'node:child_process'
import { createServer } from 'node:http'
import { connect } from 'node:net'
import { dirname } from 'node:path'
import { findFreePorts } from '@countersign/testing'
import { describe, expect, test } from 'vitest'
import { launchedBy } from './launcher/launchers.ts'
import type { Container } from './test/containers.ts'
import {
  callersOf,
  ceremony,
  ceremonyFiles,
  containers,
  documents,
  kubernetesFiles,
  kustomization,
  read,
} from './test/manifests.ts'
import { type EnclaveConfig, readContainerConfig } from './test/readContainerConfig.ts'

describe('the Kubernetes manifests', () => {
  test('are all listed in the kustomization', () => {
    expect(kustomization.resources.toSorted()).toEqual(kubernetesFiles.toSorted())
    // Only a recovery opens access for custodians.
    expect([...ceremony.resources, 'custodians.yaml'].toSorted()).toEqual(ceremonyFiles.toSorted())
    for (const image of ceremony.images) expect(kustomization.images).toContainEqual(image)
  })

  test('are applied unchanged: a kustomization has no patches or generators', () => {
    for (const one of [kustomization, ceremony]) {
      expect(Object.keys(one)).toEqual(['apiVersion', 'kind', 'resources', 'images'])
      for (const image of one.images) expect(Object.keys(image)).toEqual(['name', 'newTag'])
    }
  })

  test('a ceremony is a genesis or a recovery with the configuration of the serving enclaves', () => {
    const find = (where: string) => containers.kubernetes?.find((one) => one.where === where) as Container
    const serving = readContainerConfig(find('StatefulSet enclave/enclave')) as EnclaveConfig
    const pod = find('Pod enclave-ceremony/enclave')
    const backup = '/run/root-backup/root-backup.json'
    const recover = { ROOT_SECRET_FROM: 'recover', ROOT_SECRET_BACKUP_FILE: backup }
    const renewed = { ...recover, ROOT_SECRET_NEW_BACKUP_FILE: '/backup/new-root-backup.json' }
    for (const [kind, env] of Object.entries({ genesis: {}, recover, renewed })) {
      const config = readContainerConfig({ ...pod, env: { ...pod.env, ...env } }) as EnclaveConfig
      expect(config.enclave).toEqual(serving.enclave)
      expect(config.rootSecret).toMatchObject({ from: { kind: kind === 'genesis' ? kind : 'recover' } })
    }
    expect(serving.rootSecret).toMatchObject({ from: { kind: 'join', backupPath: backup } })
    // The volume contains the written file, and the read file is mounted.
    expect(pod.mounts).toEqual(expect.arrayContaining(['/backup', dirname(backup)]))
    expect(dirname(pod.env.ROOT_SECRET_BACKUP_FILE ?? '')).toBe('/backup')
  })

  test('every IPFS node is reachable and announces its address', () => {
    const nodes = documents.find(({ kind, metadata }) => kind === 'ConfigMap' && metadata.name === 'kubo')?.data ?? {}
    for (const name of ['worker-0', 'worker-1']) {
      const addresses: string[] = JSON.parse(nodes[`announce-${name}.json`] ?? '[]')
      expect(addresses.map((address) => address.replace(/^\/dns4\/[^/]+/, ''))).toEqual([
        '/tcp/4001',
        '/udp/4001/quic-v1',
      ])
      const service = documents.find(({ kind, metadata }) => kind === 'Service' && metadata.name === `${name}-swarm`)
      expect(service?.spec).toMatchObject({ selector: { 'statefulset.kubernetes.io/pod-name': name } })
    }
  })

  test('allow DNS queries to the cluster and to a cache on the node', () => {
    const asking = documents.flatMap(({ kind, metadata, spec }) => {
      const text = JSON.stringify(spec ?? {})
      return kind === 'NetworkPolicy' && text.includes('"port":53') ? [[metadata.name, text] as const] : []
    })
    expect(asking.map(([name]) => name).toSorted()).toEqual(['coordinator', 'enclave', 'worker'])
    for (const [, text] of asking) expect(text).toContain('"cidr":"169.254.20.10/32"')
  })

  test('have the topology, and allow only required connections', () => {
    const replicas = Object.fromEntries(
      documents.flatMap(({ metadata, spec }) => (spec?.template ? [[metadata.name, spec.replicas]] : [])),
    )
    expect(replicas).toEqual({ coordinator: 3, worker: 2, enclave: 2, postgres: 1, web: 2 })
    expect(callersOf('enclave').toSorted()).toEqual(['coordinator', 'enclave'])
    expect(callersOf('postgres').toSorted()).toEqual(['coordinator', 'worker'])
    for (const namespace of ['countersign', 'countersign-enclave']) {
      expect(documents).toContainEqual(
        expect.objectContaining({
          kind: 'NetworkPolicy',
          metadata: { name: 'nothing', namespace },
          spec: { podSelector: {}, policyTypes: ['Ingress', 'Egress'] },
        }),
      )
    }
  })

  test('the instructions create all Secrets and ConfigMaps', () => {
    for (const name of ['coordinator', 'worker', 'postgres', 'coordinator-policies', 'enclave-policies', 'root-backup'])
      expect(read('docs/run/deploy.md')).toMatch(new RegExp(`(secret generic|configmap) ${name} `))
  })

  test('a sidecar forwards the metrics from loopback', async () => {
    const [sidecar, ...others] = containers.kubernetes?.filter(({ where }) => where.endsWith('/metrics')) ?? []
    expect(others.map(({ args }) => args)).toEqual([sidecar?.args])
    const upstream = createServer((_, response) => void response.end('signings 1\n'))
    await new Promise<void>((resolve) => upstream.listen(0, '127.0.0.1', resolve))
    const [from, [to = 0]] = [(upstream.address() as { port: number }).port, await findFreePorts(1)]
    const [script = '', ...ports] = launchedBy('coordinator', sidecar?.args[0])?.args ?? []
    expect(ports).toEqual(['9464', '9465'])
    const child = spawn(process.execPath, [script, String(from), String(to)], { stdio: 'ignore' })
    try {
      const scrape = () =>
        fetch(`http://127.0.0.1:${to}/metrics`).then(
          (response) => response.text(),
          () => '',
        )
      await expect.poll(scrape).toBe('signings 1\n')
      // A caller that disconnects must not end it.
      await new Promise<void>((resolve) =>
        connect(to, '127.0.0.1', function (this: { resetAndDestroy(): void }) {
          this.resetAndDestroy()
          resolve()
        }),
      )
      expect(await scrape()).toBe('signings 1\n')
    } finally {
      child.kill('SIGKILL')
      upstream.closeAllConnections()
      upstream.close()
    }
  })
})
