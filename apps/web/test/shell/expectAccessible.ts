import axe from 'axe-core'
import { expect } from 'vitest'

/** Reports every axe violation that is serious or worse. The themes differ only in colors. */
export async function expectAccessible() {
  for (const theme of ['light', 'dark'] as const) {
    document.documentElement.dataset.theme = theme
    // Skips color transitions between the themes, which have intermediate colors. Closed parts don't animate, so waiting wouldn't work.
    for (const animation of document.getAnimations()) if (animation instanceof CSSTransition) animation.finish()
    const rules = theme === 'dark' ? { runOnly: ['color-contrast'] } : {}
    const { violations } = await axe.run(document.body, { resultTypes: ['violations'], ...rules })
    const serious = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical')
    const told = serious.map(({ id, nodes }) => `${theme}: ${id}: ${nodes.map(({ html }) => html).join(' ')}`)
    expect(told).toEqual([])
  }
}
