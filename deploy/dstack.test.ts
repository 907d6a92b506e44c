import { describe, expect, test } from 'vitest'
import { hashAppCompose, parseAppCompose, toAppCompose } from './dstack/appCompose.ts'
import { type Container, programOf } from './test/containers.ts'
import { containers, dstackText, read } from './test/manifests.ts'
import { type CoordinatorConfig, enclavePolicy, readContainerConfig } from './test/readContainerConfig.ts'

describe('the dstack application', () => {
  const text = read('deploy/dstack/app-compose.json')

  test('contains the Compose file byte for byte', () => {
    expect(text).toBe(toAppCompose(dstackText))
    expect(parseAppCompose(text).docker_compose_file).toBe(dstackText)
  })

  test('has the form that dstack tools write: sorted, without whitespace', () => {
    const value = JSON.parse(text)
    expect(text).toBe(
      JSON.stringify(Object.fromEntries(Object.entries(value).sort(([left], [right]) => (left < right ? -1 : 1)))),
    )
  })

  test('accepts no configuration from outside the measurement', () => {
    expect(parseAppCompose(text)).toMatchObject({ allowed_envs: [], kms_enabled: true, gateway_enabled: false })
    expect(dstackText).not.toContain('${')
  })

  test('its hash is an event payload that a policy accepts', () => {
    const hash = hashAppCompose(text)
    expect(hash).toMatch(/^[0-9a-f]{64}$/)
    expect(hashAppCompose(`${text}\n`)).not.toBe(hash)
    const policy = JSON.stringify({ ...enclavePolicy, events: { 'compose-hash': [hash] } })
    const container = containers.compose?.find((one) => programOf(one) === 'coordinator') as Container
    const config = readContainerConfig(container, { 'enclave-policy.json': policy }) as CoordinatorConfig
    expect(config.enclavePolicy.events).toEqual({ 'compose-hash': [hash] })
  })

  test.each<[string, Record<string, unknown>, RegExp]>([
    ['an older manifest', { manifest_version: 1 }, /manifest_version/],
    ['another runner', { runner: 'bash' }, /runner/],
    ['an unknown member', { alowed_envs: [] }, /unknown member: alowed_envs/],
    ['a pre-launch script', { pre_launch_script: 'sh' }, /unknown member: pre_launch_script/],
    ['a wrong type', { kms_enabled: 'true' }, /kms_enabled/],
    ['an empty Compose file', { docker_compose_file: '' }, /docker_compose_file/],
  ])('rejects %s', (_, change, expected) => {
    expect(() => parseAppCompose(JSON.stringify({ ...JSON.parse(text), ...change }))).toThrow(expected)
  })
})
