// What grows here, and where.

using System;
using System.Collections.Generic;

namespace Greenhouse
{
    /// <summary>A plant with its thirst.</summary>
    public class Plant
    {
        public Plant(string name, double litresPerDay)
        {
            Name = name;
            LitresPerDay = litresPerDay;
        }

        public string Name { get; }

        public double LitresPerDay { get; }

        public override string ToString()
        {
            return $"{Name} ({LitresPerDay:0.0} l)";
        }
    }

    /// <summary>A bed with room for a few plants.</summary>
    public class Bed
    {
        private readonly List<Plant> plants = new List<Plant>();

        public Bed(int room)
        {
            Room = room;
        }

        public int Room { get; }

        public IReadOnlyList<Plant> Plants => plants;

        public void Add(Plant plant)
        {
            if (plants.Count == Room)
                throw new InvalidOperationException("The bed is full.");

            plants.Add(plant);
        }
    }
}
