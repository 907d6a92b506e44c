import { afterEach, describe, expect, test, vi } from 'vitest'
import { browserPage } from './serviceStore.ts'

afterEach(() => vi.unstubAllGlobals())

describe('browserPage', () => {
  test('uses the window’s address, navigation and storage', () => {
    const items = new Map<string, string>()
    const assign = vi.fn()
    vi.stubGlobal('window', {
      location: { href: 'https://app.test/a', assign },
      sessionStorage: {
        getItem: (key: string) => items.get(key) ?? null,
        setItem: (key: string, value: string) => items.set(key, value),
        removeItem: (key: string) => items.delete(key),
      },
    })
    expect(browserPage.getUrl()).toBe('https://app.test/a')
    browserPage.assign('https://api.test')
    expect(assign).toHaveBeenCalledWith('https://api.test')
    browserPage.setItem('key', '1')
    expect(browserPage.getItem('key')).toBe('1')
    browserPage.setItem('key', null)
    expect(browserPage.getItem('key')).toBeNull()
  })

  test.each([
    ['back_forward', true],
    ['navigate', false],
    ['reload', false],
    [undefined, false],
  ])('navigation type %s: isBack is %s', (type, expected) => {
    const entries = type === undefined ? [] : [{ type } as unknown as PerformanceEntry]
    const asked = vi.spyOn(performance, 'getEntriesByType').mockReturnValue(entries)
    expect(browserPage.isBack()).toBe(expected)
    asked.mockRestore()
  })

  test('ignores storage that is blocked, full or missing', () => {
    const refuse = () => {
      throw new DOMException('no', 'SecurityError')
    }
    const windows = [
      Object.defineProperty({}, 'sessionStorage', { get: refuse }),
      { sessionStorage: { getItem: refuse, setItem: refuse, removeItem: refuse } },
      {},
      undefined,
    ]
    for (const window of windows) {
      vi.stubGlobal('window', window)
      browserPage.setItem('key', '1')
      browserPage.setItem('key', null)
      expect(browserPage.getItem('key')).toBeNull()
    }
  })
})
