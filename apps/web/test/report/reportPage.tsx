import type { ReactNode } from 'react'
import { expect } from 'vitest'
import { page } from 'vitest/browser'
import { render } from 'vitest-browser-react'
import { ConfigContext, type WebConfig } from '../../src/config.ts'
import '../../src/styles/app.css'

/** Workers start slowly on a busy machine. */
export const PATIENCE = { timeout: 30_000 }

export function renderPage(content: ReactNode, config: WebConfig) {
  return render(
    <main>
      <ConfigContext value={config}>{content}</ConfigContext>
    </main>,
  )
}

export const heading = (name: string | RegExp) => expect.element(page.getByRole('heading', { name }), PATIENCE)
export const alert = (text: string | RegExp) =>
  expect.element(page.getByRole('alert').filter({ hasText: text }), PATIENCE).toBeVisible()
export const statusOf = (step: string) => document.querySelector(`[data-step="${step}"]`)?.getAttribute('data-status')
