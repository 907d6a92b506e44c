import axe from 'axe-core'
import { expect } from 'vitest'

/** Every fault that axe calls serious or worse. The themes differ in nothing but their colours. */
export async function expectAccessible() {
  for (const theme of ['light', 'dark'] as const) {
    document.documentElement.dataset.theme = theme
    // Colours on the way from one theme to the other are neither's. Not waited for: in a part that is closed nothing moves.
    for (const animation of document.getAnimations()) if (animation instanceof CSSTransition) animation.finish()
    const rules = theme === 'dark' ? { runOnly: ['color-contrast'] } : {}
    const { violations } = await axe.run(document.body, { resultTypes: ['violations'], ...rules })
    const serious = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical')
    const told = serious.map(({ id, nodes }) => `${theme}: ${id}: ${nodes.map(({ html }) => html).join(' ')}`)
    expect(told).toEqual([])
  }
}
