import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { render } from 'vitest-browser-react'
import { expectAccessible } from '../../test/shell/expectAccessible.ts'
import { createLazyPart } from './createLazyPart.tsx'

// React reports errors that a boundary catches.
beforeEach(() => void vi.spyOn(console, 'error').mockImplementation(() => {}))
afterEach(() => vi.restoreAllMocks())

const Greeting = ({ name }: { name: string }) => <p>Hello {name}</p>

function Fragile({ state }: { state: { isBroken: boolean } }) {
  if (state.isBroken) throw new Error('broken')
  return <p>Whole again</p>
}

/** A part whose script loads once `network.isUp`. */
function createPart() {
  const network = { isUp: false, loads: 0 }
  const Part = createLazyPart(
    async () => {
      network.loads += 1
      if (!network.isUp) throw new TypeError('Failed to fetch dynamically imported module')
      return Greeting
    },
    <p>Loading…</p>,
  )
  return { network, Part }
}

test('keeps the rest of the page when its script fails to load, and retries on request', async () => {
  const { network, Part } = createPart()
  const screen = await render(
    <main>
      <h1>Wallet</h1>
      <Part name="Ada" />
    </main>,
  )
  const retry = screen.getByRole('alert').getByRole('button', { name: 'Try again' })
  await expect.element(retry).toBeVisible()
  await expect.element(screen.getByRole('heading', { name: 'Wallet' })).toBeVisible()
  await expectAccessible()
  await retry.click()
  await expect.poll(() => network.loads).toBe(2)
  await expect.element(retry).toBeVisible()
  network.isUp = true
  await retry.click()
  await expect.element(screen.getByText('Hello Ada')).toBeVisible()
  expect(network.loads).toBe(3)
})

test('loads again when shown after a failure, and only once after a success', async () => {
  const { network, Part } = createPart()
  const first = await render(<Part name="Ada" />)
  await expect.element(first.getByRole('alert')).toBeVisible()
  await first.unmount()
  network.isUp = true
  for (const name of ['Bob', 'Carol']) {
    const again = await render(<Part name={name} />)
    await expect.element(again.getByText(`Hello ${name}`)).toBeVisible()
    await again.unmount()
  }
  expect(network.loads).toBe(2)
})

test('keeps the rest of the page when the part throws', async () => {
  const Part = createLazyPart(async () => Fragile, null)
  const state = { isBroken: true }
  const screen = await render(<Part state={state} />)
  const retry = screen.getByRole('button', { name: 'Try again' })
  await expect.element(retry).toBeVisible()
  state.isBroken = false
  await retry.click()
  await expect.element(screen.getByText('Whole again')).toBeVisible()
})
