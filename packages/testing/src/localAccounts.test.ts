import { describe, expect, test } from 'vitest'
import { createLocalAccounts, readRemembered, writeRemembered } from './localAccounts.ts'
import { renderSignInPage } from './localSignInPage.ts'

const accounts = [{ sub: 'alice', email: 'alice@example.com', name: 'The one called alice' }]
const subOf = (name: string) => createLocalAccounts(accounts).findByName(name)?.sub

describe('local accounts', () => {
  test('a name is one account, regardless of case, spaces and restarts', () => {
    expect(subOf('Grace Hopper')).toBe('grace-hopper')
    expect(subOf('  GRACE \t hopper\n')).toBe('grace-hopper')
    expect(createLocalAccounts([]).findByName('Grace Hopper')).toEqual({
      sub: 'grace-hopper',
      email: 'grace-hopper@example.com',
      name: 'Grace Hopper',
    })
  })

  test('finds suggested accounts by name and subject', () => {
    expect(createLocalAccounts(accounts).findByName('the one called ALICE')).toBe(accounts[0])
    expect(createLocalAccounts(accounts).findByName('Alice')).toBe(accounts[0])
  })

  test('different names get different ASCII subjects', () => {
    const names = ['Jose', 'José', 'Jo-se', 'Jo se', 'Jo.se', '李', '王', '🦊', 'ß', 'ss', '__proto__']
    const subs = names.map(subOf)
    expect(new Set(subs).size).toBe(names.length - 1)
    expect(subOf('Jo-se')).toBe(subOf('Jo se'))
    for (const sub of subs) expect(sub).toMatch(/^[a-z0-9-]{1,80}$/)
  })

  test.each(['', ' ', '\u0000', '\u200b\u202e', '\n'])('rejects %j as a name', (name) => {
    expect(createLocalAccounts(accounts).findByName(name)).toBeUndefined()
  })

  test('truncates a long name between characters', () => {
    expect([...(createLocalAccounts([]).findByName('🦊'.repeat(100))?.name ?? '')].length).toBe(60)
  })
})

describe('remembered names', () => {
  const toCookies = (header: string) => header.split(';')[0] ?? ''

  test('keeps five different names, newest first', () => {
    let cookies = ''
    for (const name of ['a', 'b', 'c', 'b', 'é; x=1', 'e', 'f']) cookies = toCookies(writeRemembered(cookies, name))
    expect(readRemembered(`other=1; ${cookies}; more=2`)).toEqual(['f', 'e', 'é; x=1', 'b', 'c'])
  })

  test.each([
    undefined,
    '',
    'local-people=',
    'local-people=%',
    'local-people={}',
    'local-people=%5B',
    'xlocal-people=[]',
  ])('ignores %j', (cookies) => expect(readRemembered(cookies)).toEqual([]))
})

test('escapes names in markup', () => {
  const name = `<script>"'&`
  const page = renderSignInPage({ remembered: [name], suggested: [], isRefused: true })
  expect(page).not.toContain('<script')
  expect(page).toContain('Sign in as &#60;script&#62;&#34;&#39;&#38;')
})
