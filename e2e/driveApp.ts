import type { Address, Hex } from 'viem'
import { expect } from 'vitest'
import type { ShownError, Views } from './app/View.tsx'
import { chooseAccount } from './chooseAccount.ts'
import type { Tab } from './openTab.ts'

type Payment = { to: Address; ether?: string; data?: Hex; times?: number }

/** Twenty payments in a row take a while on a busy machine. */
const WAIT = { timeout: 90_000, interval: 50 }

/** Controls the app in `app/` and reads its state. */
export function driveApp(tab: Tab) {
  const { page } = tab

  /** A hook's values on the page. */
  async function read<Name extends keyof Views>(name: Name): Promise<Views[Name]> {
    return JSON.parse((await page.getByLabel(name, { exact: true }).textContent()) ?? '')
  }

  /** Retries until it matches: `await app.see('useService').toMatchObject(…)`. */
  const see = <Name extends keyof Views>(name: Name) => expect.poll(() => read(name), WAIT)

  const press = (name: string) => page.getByRole('button', { name, exact: true }).click()

  async function waitUntilReady(): Promise<Views['useService']> {
    await see('useService').toMatchObject({ ready: true })
    return read('useService')
  }

  async function waitForOutcomes(count = 1): Promise<Views['outcomes']> {
    await see('outcomes').toHaveLength(count)
    return read('outcomes')
  }

  return {
    ...tab,
    read,
    see,
    press,
    waitUntilReady,
    /** With the page's button. Returns the wallet's address. */
    async signIn(name: string): Promise<Address> {
      await press('Sign in')
      await chooseAccount(page, name)
      const { user, wallet, error } = await waitUntilReady()
      expect([user?.email, error]).toEqual([`${name}@example.com`, null])
      return wallet?.address ?? expect.fail('no wallet')
    },
    async pay({ to, ether = '0', data = '0x', times = 1 }: Payment): Promise<void> {
      for (const [label, text] of Object.entries({ To: to, Ether: ether, Data: data, Times: String(times) })) {
        await page.getByLabel(label, { exact: true }).fill(text)
      }
      await press('Pay')
    },
    /** Outcomes of the last calls, once all have finished. */
    waitForOutcomes,
    async waitForResults(count: number) {
      const outcomes = await waitForOutcomes(count)
      return outcomes.map((outcome) => {
        if ('error' in outcome || outcome.value === null) return expect.fail(JSON.stringify(outcome))
        return outcome.value
      })
    },
    async waitForError(): Promise<ShownError> {
      const [outcome] = await waitForOutcomes()
      return outcome && 'error' in outcome ? outcome.error : expect.fail(JSON.stringify(outcome))
    },
  }
}

export type App = ReturnType<typeof driveApp>
