import { createUser } from '@countersign/testing/stack'
import type { Target } from './startTarget.ts'

/** A sign-in that has come back from the provider and is not finished: everything that an attacker could hand to a victim. */
export type OpenSignIn = {
  callback: URL
  login: { name: string; value: string }
}

/** Starts the sign-in of a user and stops before the callback. */
export async function openSignIn(target: Target, as: string, query = ''): Promise<OpenSignIn> {
  const user = createUser(target)
  const callback = await user.beginSignIn(as, query)
  const [name = '', value = ''] = [...user.getCookies()].find(([each]) => each.startsWith('countersign-login-')) ?? []
  return { callback, login: { name, value } }
}
