import { createUser } from '@countersign/testing/stack'
import type { Target } from './startTarget.ts'

/** A sign-in that has returned from the provider but isn't complete, as an attacker could pass it to a victim. */
export type OpenSignIn = {
  callback: URL
  login: { name: string; value: string }
}

/** Starts a sign-in and stops before the callback. */
export async function openSignIn(target: Target, as: string, query = ''): Promise<OpenSignIn> {
  const user = createUser(target)
  const callback = await user.beginSignIn(as, query)
  const [name = '', value = ''] = [...user.getCookies()].find(([each]) => each.startsWith('countersign-login-')) ?? []
  return { callback, login: { name, value } }
}
