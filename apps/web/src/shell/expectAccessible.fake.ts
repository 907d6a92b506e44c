import axe from 'axe-core'
import { expect } from 'vitest'

/** Every fault that axe calls serious or worse, in both themes. */
export async function expectAccessible() {
  for (const theme of ['light', 'dark'] as const) {
    document.documentElement.dataset.theme = theme
    // Colours on the way from one theme to the other are neither's. Not waited for: in a part that is closed nothing moves.
    for (const animation of document.getAnimations()) if (animation instanceof CSSTransition) animation.finish()
    const { violations } = await axe.run(document.body, { resultTypes: ['violations'] })
    const serious = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical')
    const told = serious.map(({ id, nodes }) => `${theme}: ${id}: ${nodes.map(({ html }) => html).join(' ')}`)
    expect(told).toEqual([])
  }
}
