import type { Page } from 'playwright'

/** Signs in as a user (`alice`) on the identity provider's page. */
export async function chooseAccount(page: Page, name: string): Promise<void> {
  await page.getByRole('link', { name: `Sign in as The one called ${name}`, exact: true }).click()
}
