import type { openWallet } from '../wallet/openWallet.tsx'

type Screen = Awaited<ReturnType<typeof openWallet>>['screen']

export const text = (screen: Screen) => screen.getByRole('textbox')
const review = (screen: Screen) => screen.getByRole('button', { name: 'Review' })
export const confirm = (screen: Screen) => screen.getByRole('button', { name: 'Sign', exact: true })

export async function write(screen: Screen, content: string, kind: 'Text' | 'Bytes' | 'Typed data' = 'Text') {
  await screen.getByRole('radio', { name: kind }).click()
  await text(screen).fill(content)
  await review(screen).click()
}
