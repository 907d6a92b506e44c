import { ENCLAVE_VARIABLES, readAppCompose } from '@countersign/verify'
import { describe, expect, test } from 'vitest'
import { hashAppCompose, toAppCompose } from './dstack/appCompose.ts'
import { launched } from './launcher/launchers.ts'
import { type Container, programOf } from './test/containers.ts'
import { containers, dstackText, read } from './test/manifests.ts'
import { type CoordinatorConfig, enclavePolicy, readContainerConfig } from './test/readContainerConfig.ts'

describe('the dstack application', () => {
  const text = read('deploy/dstack/app-compose.json')

  test('contains the Compose file byte for byte', () => {
    expect(text).toBe(toAppCompose(dstackText))
  })

  test('has the form that verify --source reads, with the variables of the launcher', () => {
    const { image, settings } = readAppCompose(new TextEncoder().encode(text))
    expect(image).toBe('registry.example.com/countersign-enclave')
    expect(settings).toContainEqual({ name: 'QUOTE_SOURCE', value: 'dstack' })
    expect(ENCLAVE_VARIABLES).toEqual(launched.enclave.enclave.env)
  })

  test('has the form that dstack tools write: sorted, without whitespace', () => {
    const value = JSON.parse(text)
    expect(text).toBe(
      JSON.stringify(Object.fromEntries(Object.entries(value).sort(([left], [right]) => (left < right ? -1 : 1)))),
    )
  })

  test('accepts no configuration from outside the measurement', () => {
    expect(JSON.parse(text)).toMatchObject({ allowed_envs: [], kms_enabled: true, gateway_enabled: false })
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
})
