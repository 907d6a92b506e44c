import { describe, expect, test } from 'vitest'
import { createLocalPeople, readRemembered, writeRemembered } from './localPeople.ts'
import { renderSignInPage } from './localSignInPage.ts'

const accounts = [{ sub: 'alice', email: 'alice@example.com', name: 'The one called alice' }]
const subOf = (name: string) => createLocalPeople(accounts).become(name)?.sub

describe('anybody can be anybody', () => {
  test('one name is one person, whatever its case and spaces, and after a restart', () => {
    expect(subOf('Grace Hopper')).toBe('grace-hopper')
    expect(subOf('  GRACE \t hopper\n')).toBe('grace-hopper')
    expect(createLocalPeople([]).become('Grace Hopper')).toEqual({
      sub: 'grace-hopper',
      email: 'grace-hopper@example.com',
      name: 'Grace Hopper',
    })
  })

  test('whoever is suggested is met by name and by subject', () => {
    expect(createLocalPeople(accounts).become('the one called ALICE')).toBe(accounts[0])
    expect(createLocalPeople(accounts).become('Alice')).toBe(accounts[0])
  })

  test('names that differ are people who differ, in ASCII', () => {
    const names = ['Jose', 'José', 'Jo-se', 'Jo se', 'Jo.se', '李', '王', '🦊', 'ß', 'ss', '__proto__']
    const subs = names.map(subOf)
    expect(new Set(subs).size).toBe(names.length - 1)
    expect(subOf('Jo-se')).toBe(subOf('Jo se'))
    for (const sub of subs) expect(sub).toMatch(/^[a-z0-9-]{1,80}$/)
  })

  test.each(['', ' ', '\u0000', '\u200b\u202e', '\n'])('%j is no name', (name) => {
    expect(createLocalPeople(accounts).become(name)).toBeUndefined()
  })

  test('a long name is cut between characters', () => {
    expect([...(createLocalPeople([]).become('🦊'.repeat(100))?.name ?? '')].length).toBe(60)
  })
})

describe('who was here', () => {
  const toCookies = (header: string) => header.split(';')[0] ?? ''

  test('is remembered, newest first, five at most, each once', () => {
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
  ])('is nobody in %j', (cookies) => expect(readRemembered(cookies)).toEqual([]))
})

test('nothing of a name becomes markup', () => {
  const name = `<script>"'&`
  const page = renderSignInPage({ remembered: [name], suggested: [], isRefused: true })
  expect(page).not.toContain('<script')
  expect(page).toContain('Sign in as &#60;script&#62;&#34;&#39;&#38;')
})
