import { renderToString } from 'react-dom/server'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { config } from '../../test/client/network.ts'
import {
  ServiceProvider,
  useAttestation,
  useService,
  useSign,
  useSignMessage,
  useSignTypedData,
  useWallet,
} from '../index.ts'

afterEach(() => vi.unstubAllGlobals())

function Page() {
  const { client, error } = useService()
  const { user, wallet, ready } = useWallet()
  const { pending, lastResult } = useSign()
  const { proof, loading } = useAttestation('slug')
  const signed = [useSignMessage().lastResult, useSignTypedData().lastResult]
  const states = [error, user, wallet, ready, pending, lastResult, proof, loading, ...signed]
  return <p>{JSON.stringify([client.config.chainId, ...states])}</p>
}

const Run = ({ useHook }: { useHook: () => unknown }) => String(useHook())

describe('on a server', () => {
  test('the first render is not ready and sends no request', () => {
    const fetch = vi.fn()
    vi.stubGlobal('fetch', fetch)
    const page = renderToString(
      <ServiceProvider config={config}>
        <Page />
      </ServiceProvider>,
    )
    expect(page).toBe('<p>[31337,null,null,null,false,false,null,null,false,null,null]</p>')
    expect(fetch).not.toHaveBeenCalled()
  })

  test('import and first render use no browser global', async () => {
    for (const name of ['window', 'document', 'navigator', 'location', 'sessionStorage', 'localStorage', 'fetch']) {
      vi.stubGlobal(name, undefined)
    }
    vi.resetModules()
    const sdk = await import('../index.ts')
    const server = await import('react-dom/server')
    const page = server.renderToString(
      <sdk.ServiceProvider config={config}>
        <Run useHook={() => sdk.useWallet().ready} />
      </sdk.ServiceProvider>,
    )
    expect(page).toBe('false')
  })

  test.each([
    ['useService', useService],
    ['useWallet', useWallet],
    ['useSign', useSign],
    ['useSignMessage', useSignMessage],
    ['useSignTypedData', useSignTypedData],
    ['useAttestation', () => useAttestation('slug')],
  ])('§4, §7 %s outside the provider throws', (_, useHook) => {
    expect(() => renderToString(<Run useHook={useHook} />)).toThrow(
      new Error('useService must be used inside <ServiceProvider>'),
    )
  })
})
