import { expect, test } from 'vitest'
import { render } from 'vitest-browser-react'
import { expectAccessible } from '../../test/shell/expectAccessible.ts'
import { ConfigError } from '../config.ts'
import { ConfigErrorPage } from './ConfigErrorPage.tsx'
import '../styles/app.css'

test('lists every error and the remedy', async () => {
  const faults = ['apiBaseUrl must be the http(s) URL of the service', 'chainId must be a positive whole number']
  const screen = await render(<ConfigErrorPage error={new ConfigError(faults)} />)
  for (const fault of faults) await expect.element(screen.getByRole('alert').getByText(fault)).toBeVisible()
  await expect.element(screen.getByText(/If you host this app/)).toBeVisible()
  await expectAccessible()
})

test('hides the text of unexpected errors', async () => {
  const screen = await render(<ConfigErrorPage error={new Error('inner text')} />)
  await expect.element(screen.getByText('the configuration couldn’t be read')).toBeVisible()
  expect(screen.getByText('inner text').query()).toBeNull()
})
