import type { EIP1193Provider } from 'viem'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { announceProvider } from './announceProvider.ts'

const provider = {} as EIP1193Provider
const info = {
  uuid: '350670db-19fa-4704-a166-e52e178b59d2',
  name: 'Countersign',
  icon: 'data:image/svg+xml,<svg/>',
  rdns: 'com.example.wallet',
} as const

describe('with a window', () => {
  let page: EventTarget
  const seen = vi.fn()

  beforeEach(() => {
    page = new EventTarget()
    page.addEventListener('eip6963:announceProvider', (event) => seen((event as CustomEvent).detail))
    vi.stubGlobal('window', page)
  })
  afterEach(() => {
    seen.mockClear()
    vi.unstubAllGlobals()
  })

  test('announces immediately and on request, until stopped', () => {
    const stop = announceProvider({ provider, info })
    expect(seen).toHaveBeenCalledExactlyOnceWith({ info, provider })
    page.dispatchEvent(new Event('eip6963:requestProvider'))
    expect(seen).toHaveBeenCalledTimes(2)
    stop()
    page.dispatchEvent(new Event('eip6963:requestProvider'))
    expect(seen).toHaveBeenCalledTimes(2)
  })

  test('a listener cannot replace the provider', () => {
    announceProvider({ provider, info })
    const detail = seen.mock.calls[0]?.[0]
    expect(() => {
      detail.provider = {}
    }).toThrow(TypeError)
    expect(() => {
      detail.info.name = 'Other'
    }).toThrow(TypeError)
  })
})

test('does nothing without a window', () => {
  expect(() => announceProvider({ provider, info })()).not.toThrow()
})
