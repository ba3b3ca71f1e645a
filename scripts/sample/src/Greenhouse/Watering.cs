using System.Linq;
// Beds are given as a sequence, so that a caller may leave some out.
using System.Collections.Generic;
using System.Text;
using System;

namespace Greenhouse
{
    /// <summary>Decides how much water goes where.</summary>
    public static class Watering
    {
        public static double LitresFor(Bed bed, Season season)
        {
            var litres = bed.Plants.Sum(plant => plant.LitresPerDay);
            if (season == Season.Summer)
                litres *= 1.5;
            else if (season == Season.Winter) litres *= 0.25; // most of them sleep
            else
                litres = Math.Round(litres, 2);

            return litres;
        }

        public static int Thirsty(IEnumerable<Bed> beds, double limit)
        {
            int count = 0;
            foreach (var bed in beds)
                foreach (var plant in bed.Plants)
                    if (plant.LitresPerDay > limit)
                        count++;

            return count;
        }
    }
}
