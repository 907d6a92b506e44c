import type { Page } from 'playwright'

/** On the page of the identity provider: one click signs in as a user (`alice`). */
export async function chooseAccount(page: Page, name: string): Promise<void> {
  await page.getByRole('link', { name: `Sign in as The one called ${name}`, exact: true }).click()
}
